"""In which state each node is, and how many GPUs are in each: every GPU in exactly one."""

from collections import Counter
from enum import IntEnum

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState
from rackwright.core.racks import Node, Rack, Tenancy
from rackwright.wire.jobs import JobClass


class State(IntEnum):
    """States of a GPU. The first four are at work; `large`: of a job of several slices."""

    LARGE = 0
    SMALL = 1
    LENT = 2
    INTERACTIVE = 3
    RESTARTING = 4
    STALLED = 5
    DRAINING = 6
    SPARE = 7
    FRAGMENT = 8
    WHOLE_FREE = 9
    PROBATION = 10
    DOWN = 11


OCCUPIED = frozenset(
    {
        State.LARGE,
        State.SMALL,
        State.LENT,
        State.INTERACTIVE,
        State.RESTARTING,
        State.STALLED,
    }
)
SLICE = 16


def snapshot(fleet: Fleet) -> tuple[bytes, dict[State, int]]:
    """The state of every node in order of racks (of a shared one: of most of it), and GPUs by
    state."""
    nodes = bytearray()
    gpus: Counter[State] = Counter()
    for number in sorted(fleet.racks):
        rack = fleet.racks[number]
        free = _free_state(rack)
        leaving = {one.node for one in rack.leaving}
        for place, node in enumerate(rack.nodes):
            found = _of_node(fleet, rack, place, node, leaving, free)
            gpus.update(found)
            nodes.append(max(found, key=lambda state: (state in OCCUPIED, found[state])))
    return bytes(nodes), dict(gpus)


def _of_node(
    fleet: Fleet, rack: Rack, place: int, node: Node, leaving: set[int], free: list[State]
) -> Counter[State]:
    found: Counter[State] = Counter()
    for tenancy in rack.tenants_at(place):
        count = tenancy.gpus.bit_count() or node.gpus
        found[_of_tenancy(fleet, tenancy)] += count
    left = node.gpus - found.total()
    if left > 0:
        found[_of_idle(fleet, rack, place, node, leaving, free, bool(found))] += left
    return found


def _of_idle(
    fleet: Fleet,
    rack: Rack,
    place: int,
    node: Node,
    leaving: set[int],
    free: list[State],
    shared: bool,
) -> State:
    if not node.schedulable or rack.isolated:
        return State.DOWN
    if not rack.takes >> place & 1:
        return State.PROBATION
    if place in leaving:
        return State.DRAINING
    return State.FRAGMENT if shared or not free else free.pop()


def _free_state(rack: Rack) -> list[State]:
    """What the free nodes of the rack are: spares first, then room for a slice or scraps."""
    usable = rack.usable.bit_count()
    rest = State.WHOLE_FREE if usable >= SLICE else State.FRAGMENT
    spares = min(usable, rack.shape.target)
    return [rest] * (usable - spares) + [State.SPARE] * spares


def _of_tenancy(fleet: Fleet, tenancy: Tenancy) -> State:
    job: Job = fleet.jobs[tenancy.job]
    if job.wounds:
        return State.STALLED
    if job.state is JobState.PLACED or job.started != job.membership:
        return State.RESTARTING
    if job.spec.job_class is JobClass.INTERACTIVE:
        return State.INTERACTIVE
    if tenancy.lent:
        return State.LENT
    return State.LARGE if len(job.slices) > 1 else State.SMALL
