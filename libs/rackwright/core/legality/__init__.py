"""Which entries a fleet admits. Asked before a commit and again in the fold, the same in each copy.

These are facts, not policy: who may have a node at all, not who should. `illegal` returns None or
a short sentence with the ids and numbers that make the entry impossible here.
"""

from collections.abc import Callable
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.legality import cell, jobs, nodes, slices
from rackwright.wire.entries.node import NodeCordoned, NodeUncordoned
from rackwright.wire.message import Entry
from rackwright.wire.versions import FOLD_VERSION, too_new
from rackwright.wire.wishes import NODE_WISHES

RULES: dict[str, Callable[[Fleet, Any], str | None]] = {
    **cell.RULES,
    **jobs.RULES,
    **slices.RULES,
    **nodes.RULES,
}
_NODE_KINDS = frozenset(kind.TYPE for kind in NODE_WISHES)


def answering(entry: Entry) -> str:
    """The service whose business the answered wish is: node wishes are the health-monitor's."""
    if isinstance(entry, NodeCordoned | NodeUncordoned) or entry.TYPE.startswith("node."):
        return "health-monitor"
    kind = getattr(entry, "kind", "")
    return "health-monitor" if kind in _NODE_KINDS else "placer"


def illegal(fleet: Fleet, entry: Entry) -> str | None:
    """None when `entry` may follow this fleet, else why not."""
    if entry.wish is not None and fleet.answered(answering(entry), entry.wish):
        return f"wish {entry.wish} has been answered"
    if fleet.fold_version < FOLD_VERSION:
        why = too_new(entry, fleet.fold_version)
        if why is not None:
            return why
    return RULES[entry.TYPE](fleet, entry)
