"""Which rates a plan counts with, and its answer as programs read it."""

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from rackwright.core.experience import Experience
from rackwright.core.policy.capacity import Impossible, Reliability, reliability
from rackwright.core.policy.planning import (
    ASSUMPTIONS,
    Answer,
    SizeLine,
    money,
    year_gpu_h,
)
from rackwright.core.policy.rackfaults import RackFault

HOURS = 24.0


class NotEnough(ValueError):
    """Too little is known; the text says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was said on the command line."""

    unavailable: float | None = None
    mtbi_days: float | None = None
    repair_hours: float | None = None

    def __post_init__(self) -> None:
        for name in ("unavailable", "mtbi_days", "repair_hours"):
            value = getattr(self, name)
            if value is not None and not isfinite(value):
                raise Impossible(name.replace("_", " "), value, "must be a number")


def figures(
    given: Given, learnt: Experience | None
) -> tuple[float, Reliability | None, tuple[RackFault, ...]]:
    """Unavailability, rates if they are known, and rack faults that were learnt.

    What was said goes before what was learnt. Raises Impossible, Disagreement, NotEnough.
    """
    mtbi, repair = given.mtbi_days, given.repair_hours
    share = given.unavailable
    faults: tuple[RackFault, ...] = ()
    if learnt is not None:
        mtbi, repair = _filled(mtbi, repair, share, learnt)
        faults = _rack_faults(learnt)
    if share is not None and not 0 <= share <= 1:
        raise Impossible("unavailable", share, "a share, 0 to 1")
    if share is not None and (mtbi is None and repair is None):
        return share, None, faults
    known = [value is not None for value in (mtbi, repair, share)]
    if sum(known) < 2:
        raise NotEnough(
            "two of --unavailable, --node-mtbi-days and --repair-hours are needed (or"
            " --unavailable alone, or --from-ledger)"
        )
    if share == 0.0:
        raise Impossible("unavailable", share, "must be above 0 where rates are given")
    repair_days = None if repair is None else repair / HOURS
    node = reliability(mtbf_days=mtbi, repair_days=repair_days, unavailable=share)
    return node.unavailable, node, faults


def _filled(
    mtbi: float | None, repair: float | None, share: float | None, learnt: Experience
) -> tuple[float | None, float | None]:
    if mtbi is None and (repair is None or share is None):
        mtbi = learnt.node_mtbi_days.value
        if not mtbi:
            raise NotEnough(
                f"the ledger holds no fault of a node in {learnt.node_days:.1f} node-days: one has"
                f" it at most every {learnt.node_mtbi_days.low or 0:.1f} days (95 %); say"
                " --node-mtbi-days"
            )
    if repair is None and share is None:
        repair = learnt.node_repair_hours.value
        if not repair:
            raise NotEnough(
                f"the ledger holds {learnt.node_faults} faults of nodes and no end of one: say"
                " --repair-hours"
            )
    return mtbi, repair


def _rack_faults(learnt: Experience) -> tuple[RackFault, ...]:
    days, hours = learnt.rack_mtbi_days.value, learnt.rack_repair_hours.value
    if not days or not hours:
        return ()
    return (RackFault(name="rack", mtbi_days=days, repair_hours=hours),)


def told(found: Answer, learnt: Experience | None) -> dict[str, Any]:
    """The answer for programs."""
    question, cell = found.question, found.question.cell
    node, between = question.node, found.between
    return {
        "cell": {
            "racks": cell.racks,
            "nodes_per_rack": cell.nodes_per_rack,
            "gpus_per_node": cell.gpus_per_node,
            "nodes": cell.nodes,
            "gpus": cell.gpus,
            "unavailable": question.unavailable,
            "node_mtbi_days": None if node is None else node.mtbf_days,
            "repair_hours": None if node is None else node.repair_days * HOURS,
            "rack_faults": [asdict(fault) for fault in question.faults],
        },
        "slices": [_slice(found, line) for line in found.sizes],
        "mtbi": {
            "node_days": None if between is None else between.node_days,
            "rack_days": None if between is None else between.rack_days,
            "cell_hours": None if between is None else between.cell_hours,
        },
        "break_even": [asdict(one) for one in found.crossings],
        "recommendation": {**asdict(found.recommendation), "rule": asdict(question.rule)},
        "habits": asdict(question.habits),
        "learnt": None if learnt is None else asdict(learnt),
        "assumptions": list(ASSUMPTIONS),
    }


def _slice(found: Answer, line: SizeLine) -> dict[str, Any]:
    question, cell = found.question, found.question.cell
    usable_gpu_h = year_gpu_h(line.usable.mean, cell.gpus_per_node)
    made: dict[str, Any] = {
        "slice_nodes": line.slice_nodes,
        "slices_per_rack": line.slices_per_rack,
        "usable_nodes_mean": line.usable.mean,
        "usable_nodes_p1": line.usable.p1,
        "usable_nodes_p10": line.usable.p10,
        "usable_nodes_p50": line.usable.p50,
        "usable_nodes_p90": line.usable.p90,
        "usable_share": line.share,
        "lost_share": line.lost_share,
        "group_gpus": line.group_gpus,
        "leftover_nodes": line.leftover_nodes,
        "usable_gpu_hours_per_year": usable_gpu_h,
        "spares": [
            {
                "spares": one.spares,
                "fits": one.fits,
                "slices_given_up": one.slices_given_up,
                "interruptions_per_year": one.interruptions,
                "unswappable_per_year": one.unswappable,
                "rack_faults_per_year": one.rack_faults,
                "lost_gpu_hours_with_swap": one.lost_with_swap_gpu_h,
                "lost_gpu_hours_without_swap": one.lost_without_swap_gpu_h,
                "held_nodes": one.held_nodes,
            }
            for one in line.spares
        ],
    }
    if question.gpu_hour_price is not None:
        made["estimate_usable_value_per_year"] = money(question, usable_gpu_h)
        for one, spare in zip(made["spares"], line.spares, strict=True):
            one["estimate_lost_value_with_swap"] = money(question, spare.lost_with_swap_gpu_h)
            one["estimate_lost_value_without_swap"] = money(question, spare.lost_without_swap_gpu_h)
    return made
