"""What a node has to do to obey its assignment. Pure: the orders are values.

Only a value that is bound to this session and not older than what was seen is obeyed; a worker is
stopped only by a line that names its end. Whatever lives and is not named goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rackwright.agent.records import WorkerRecord, WorkerState
from rackwright.wire.ids import LedgerId, NodeId, SessionId, WorkerId
from rackwright.wire.values import AssignmentLine, NodeAssignment, RackAssignments, StopLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The newest value this node has obeyed. Kept on disk, so a restart does not go back."""

    ledger: LedgerId | None = None
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Set the worker up, held before its command."""

    line: AssignmentLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """Start the command: every gate is open."""

    worker: WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End it, after its notice and with its grace."""

    line: StopLine


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """A notice that was given is withdrawn: the worker stays."""

    worker: WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Never known here, so it does not run here: its id is used up and reported as ended."""

    worker: WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Ended, reaped, and nobody asks for it any more."""

    worker: WorkerId


Order = Prepare | Go | Stop | GoOn | Spend | Forget


def accept(
    seen: Seen, session: SessionId, node: NodeId, value: RackAssignments
) -> NodeAssignment | None:
    """The part of a rack's value that this node must obey, None when there is no news in it."""
    if seen.ledger is not None and value.ledger != seen.ledger:
        return None
    if value.seq < seen.seq:
        return None
    mine = value.nodes.get(node)
    return mine if mine is not None and mine.session == session else None


def orders(
    mine: NodeAssignment, records: Mapping[str, WorkerRecord], stopping: frozenset[WorkerId]
) -> list[Order]:
    """All that is left to do. `stopping` are workers that were told to end already."""
    made: list[Order] = []
    for stop in mine.stop:
        record = records.get(stop.worker)
        if record is None:
            made.append(Spend(worker=stop.worker))
        elif not record.ended and stop.worker not in stopping:
            made.append(Stop(line=stop))
    for line in mine.run:
        if line.worker in stopping:
            made.append(GoOn(worker=line.worker))
        record = records.get(line.worker)
        if record is None:
            made.append(Prepare(line=line))
        elif line.open and record.state is WorkerState.PREPARED:
            made.append(Go(worker=line.worker))
    named = {line.worker for line in mine.run} | {stop.worker for stop in mine.stop}
    made.extend(
        Forget(worker=WorkerId(worker))
        for worker, record in records.items()
        if record.ended and record.reaped and worker not in named
    )
    return made
