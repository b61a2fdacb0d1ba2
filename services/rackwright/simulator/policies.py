"""The policies that can be compared, by name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rackwright.core.machine import Machine
from rackwright.simulator.peers import SingleSwap, WholeJobRequeue
from rackwright.spare_manager.machine import SpareManager
from rackwright.wire.jobs import TopologyNeed
from rackwright.wire.policy import Policy


class UnknownPolicy(ValueError):
    """No policy has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown policy {name!r}: one of {', '.join(POLICIES)}")
        self.name = name


SIMULATED: dict[str, Any] = {
    "time_limit_batch_s": 3e7,
    "time_limit_pinned_s": 3e7,
    "time_limit_interactive_s": 3e7,
    "interactive_owner_gpus": 1_000_000,
    "rejoin_s": 3_600.0,
    "block_repeat_s": 300.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One policy: settings of the cell, who heals, and whether jobs care for topology.

    `in_order`: strict first come, first served. A job is shown to the cell only when the one before
    it has its nodes.
    """

    name: str
    text: str
    settings: dict[str, Any] = field(default_factory=dict)
    healer: Callable[[], Machine[Any]] = SpareManager
    defrag: bool = True
    topology: TopologyNeed = TopologyNeed.REQUIRED
    in_order: bool = False

    def policy(self, nodes_per_rack: int) -> Policy:
        """The settings in a cell with racks of that size. Time limits leave room for waiting; a
        cause is looked for again as often as the simulated defragmenter looks, every 5 minutes."""
        settings = {"slice_nodes": min(16, nodes_per_rack), **self.settings}
        settings["slice_nodes"] = min(settings["slice_nodes"], nodes_per_rack)
        return Policy(**{**SIMULATED, **settings})


NO_SPARES = {"spares_large": 0, "spares_small": 0, "lend_spares": False}
ALL = (
    Setup(
        name="rackwright",
        text="slices of 16, two spares, lent; swap, move, defragmentation",
    ),
    Setup(
        name="no-spares",
        text="the same with slices of a whole rack (18 nodes) and no spares",
        settings={**NO_SPARES, "slice_nodes": 18},
    ),
    Setup(
        name="no-swap",
        text="the same, but a job that loses a node is restarted as a whole",
        healer=WholeJobRequeue,
    ),
    Setup(name="no-defrag", text="the same without defragmentation", defrag=False),
    Setup(
        name="scatter",
        text="nodes anywhere, whatever the rack; whole-job restart",
        settings=NO_SPARES,
        healer=WholeJobRequeue,
        defrag=False,
        topology=TopologyNeed.ANY,
    ),
    Setup(
        name="fcfs",
        text="rackwright's slices and swaps, strict first come, first served, no defragmentation",
        defrag=False,
        in_order=True,
    ),
    Setup(
        name="slurm-block-like",
        text="segments of 16 in racks, greedy, no spares; whole-job requeue",
        settings=NO_SPARES,
        healer=WholeJobRequeue,
        defrag=False,
    ),
    Setup(
        name="kueue-like",
        text="slices of 16 in racks, best fit, no spares kept; one swap, evicted on the second",
        settings=NO_SPARES,
        healer=SingleSwap,
        defrag=False,
    ),
)
POLICIES = {setup.name: setup for setup in ALL}


def setups(names: str) -> list[Setup]:
    """The policies of a list such as `rackwright,scatter`; `all`: every one. Raises
    UnknownPolicy."""
    if names == "all":
        return list(ALL)
    found = []
    for name in names.split(","):
        if name.strip() not in POLICIES:
            raise UnknownPolicy(name.strip())
        found.append(POLICIES[name.strip()])
    return found
