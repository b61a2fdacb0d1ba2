"""What spares buy: interruptions that find no spare in their rack, and the GPU-hours they cost.

Usable nodes do not depend on spares at all; a spare turns the loss of a running slice's rack into a
swap. Figures of 140 racks, 490 days a node, repair in a day: 1,618, 53, 0.9 and 0.01 such
interruptions a year for 0 to 3 spares (policy page, section 1.6).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.core.policy.capacity import (
    DAYS_PER_YEAR,
    HOURS_PER_DAY,
    Impossible,
    Reliability,
    binomial,
    unswappable_per_year,
)
from rackwright.core.policy.rackfaults import RackFault, rack_faults_per_year

MINUTES = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How long the job on a failed node stands still; all of its GPUs do. Times in minutes.

    Defaults as in the policy page, section 1.10: for 512 GPUs a swap costs 13 GPU-hours, 166 where
    the survivors reload a checkpoint (`reload`), a move 26 or 179, a restart of the job 213.
    """

    job_gpus: int = 512
    checkpoint_min: float = 30.0
    swap_min: float = 1.5
    move_min: float = 3.0
    restart_min: float = 10.0
    reload_min: float = 3.0
    reload: bool = True

    def __post_init__(self) -> None:
        if self.job_gpus < 1:
            raise Impossible("job GPUs", self.job_gpus, "must be at least 1")
        for name in ("checkpoint_min", "swap_min", "move_min", "restart_min", "reload_min"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise Impossible(name.replace("_min", " minutes"), value, "must not be below 0")

    def swap_gpu_h(self) -> float:
        """GPU-hours of one swap in the rack."""
        return self._cost(self.swap_min, self.reload)

    def move_gpu_h(self) -> float:
        """GPU-hours of moving one slice to another rack, which must be there."""
        return self._cost(self.move_min, self.reload)

    def restart_gpu_h(self) -> float:
        """GPU-hours of starting the whole job again at once, without a time in the queue."""
        minutes = self.restart_min + self.checkpoint_min / 2
        return self.job_gpus * minutes / MINUTES

    def _cost(self, minutes: float, reload: bool) -> float:
        lost = self.reload_min + self.checkpoint_min / 2 if reload else 0.0
        return self.job_gpus * (minutes + lost) / MINUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class SpareLine:
    """One number of spares beside the slices of a rack. Rates and GPU-hours are per cell-year.

    `fits`: the rack has room for the slices and the spares. `running_nodes` of a rack are in
    slices. `slices_given_up` of a rack: those that spares take the place of. `interruptions`: node
    faults in slices that run all year (one that finds no spare runs on in another rack);
    `unswappable`: those that find none, while the slice is in a rack with at most that many down.
    """

    racks: int
    spares: int
    fits: bool
    running_nodes: int
    slices_given_up: int
    interruptions: float
    unswappable: float
    rack_faults: float
    lost_with_swap_gpu_h: float
    lost_without_swap_gpu_h: float
    held_nodes: int

    @property
    def exhaustions_per_rack_decade(self) -> float:
        """Unswappable interruptions of one rack in ten years."""
        return 10 * self.unswappable / self.racks


def spare_lines(
    *,
    racks: int,
    nodes_per_rack: int,
    slice_nodes: int,
    most: int,
    node: Reliability,
    faults: Sequence[RackFault],
    habits: Habits,
) -> list[SpareLine]:
    """0 to `most` spares beside the slices of every rack. Raises Impossible."""
    if most < 0:
        raise Impossible("spares", most, "must not be below 0")
    return [
        _spare_line(racks, nodes_per_rack, slice_nodes, spares, node, faults, habits)
        for spares in range(most + 1)
    ]


def _spare_line(
    racks: int,
    nodes_per_rack: int,
    slice_nodes: int,
    spares: int,
    node: Reliability,
    faults: Sequence[RackFault],
    habits: Habits,
) -> SpareLine:
    slices = max(1, (nodes_per_rack - spares) // slice_nodes)
    running = slices * slice_nodes
    unswappable = unswappable_per_year(
        racks=racks,
        slice_nodes=running,
        spares=spares,
        mtbf_days=node.mtbf_days,
        unavailable=node.unavailable,
    )
    others = running + spares - 1
    left = [binomial(others, down, node.unavailable) for down in range(spares + 1)]
    interruptions = racks * running / node.mtbf_days * DAYS_PER_YEAR
    moved = interruptions * left[spares] / sum(left)
    of_racks = rack_faults_per_year(faults, racks) * slices
    return SpareLine(
        racks=racks,
        spares=spares,
        fits=running + spares <= nodes_per_rack,
        running_nodes=running,
        slices_given_up=nodes_per_rack // slice_nodes - slices,
        interruptions=interruptions,
        unswappable=unswappable,
        rack_faults=of_racks,
        lost_with_swap_gpu_h=(interruptions - moved) * habits.swap_gpu_h()
        + (moved + of_racks) * habits.move_gpu_h(),
        lost_without_swap_gpu_h=(interruptions + of_racks) * habits.restart_gpu_h(),
        held_nodes=racks * spares,
    )


def held_gpu_h(nodes: int, gpus_per_node: int) -> float:
    """GPU-hours a year of nodes that are kept idle."""
    return nodes * gpus_per_node * DAYS_PER_YEAR * HOURS_PER_DAY
