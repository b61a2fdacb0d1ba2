"""Rules left out one at a time, to show that the simulation would notice: each patches code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rackwright.agent import obey
from rackwright.bus.memory_store import MemoryStream
from rackwright.bus.ports import Refused
from rackwright.core import fold as folding
from rackwright.core import legality, projection
from rackwright.core.fleet import Fleet
from rackwright.core.fold import seats
from rackwright.health_monitor import beats, returns, silence
from rackwright.health_monitor import machine as monitor
from rackwright.host import follower, snapshots, steps
from rackwright.host.commits import Author
from rackwright.host.flight import Flight
from rackwright.host.keybook import There
from rackwright.placer import course, reports, starts, verdicts
from rackwright.sim.projecting import SimProjector
from rackwright.sim.sending import Sending
from rackwright.wire.signals import WorkerState
from tests.simulation.agents import SimWorkers

Patch = pytest.MonkeyPatch


def without_compare(patch: Patch) -> None:
    """The ledger takes whatever comes, whatever sequence was expected."""
    patch.setattr(MemoryStream, "compare", lambda *_: None)


def without_compare_and_chain(patch: Patch) -> None:
    """Nor does the fold look at what a commit was made after."""
    without_compare(patch)
    patch.setattr(folding, "_broken_chain", lambda *_: None)


def without_legality(patch: Patch) -> None:
    """Late decisions are neither checked again nor void."""
    without_compare_and_chain(patch)
    patch.setattr(folding, "illegal", lambda *_: None)


def without_gates(patch: Patch) -> None:
    """A worker starts although the one before it has not ended."""
    patch.setattr(projection, "closed_gates", lambda *_: ())


def without_gates_in_the_fold(patch: Patch) -> None:
    """Nobody is to be waited for."""
    patch.setattr(seats, "gates_for", lambda *_, **__: ())


def without_waiting_for_leases(patch: Patch) -> None:
    """The suspected are declared dead at once."""
    patch.setattr(silence, "declare_after", lambda _: 0.0)


def without_recall(patch: Patch) -> None:
    """A suspected session is echoed as long as it is heard."""
    patch.setattr(beats, "may_echo", lambda node, session: node.session == session)
    patch.setattr(monitor, "may_echo", lambda node, session: node.session == session)


def without_sessions(patch: Patch) -> None:
    """An agent obeys what was meant for an earlier session of its node."""

    def accept(seen: Any, _session: Any, node: Any, value: Any) -> Any:
        return value.nodes.get(node) if value.seq >= seen.seq else None

    patch.setattr(obey, "accept", accept)
    patch.setattr(obey, "accept", accept)


def old_values_win(patch: Patch) -> None:
    """A projected value may be replaced by an older one, and agents obey it."""
    patch.setattr(There, "answers", lambda *_: False)

    def accept(_seen: Any, session: Any, node: Any, value: Any) -> Any:
        mine = value.nodes.get(node)
        return mine if mine is not None and mine.session == session else None

    patch.setattr(obey, "accept", accept)
    patch.setattr(SimWorkers, "prepare", _prepare_anything)


def _prepare_anything(self: SimWorkers, spec: Any) -> Any:
    """An id that has ended is started again."""
    self._spent.discard(spec.worker_id)
    known = self._records.get(spec.worker_id)
    if known is not None and known.ended:
        del self._records[spec.worker_id]
    self._specs[spec.worker_id] = spec
    return super(SimWorkers, self).prepare(spec)


def fold_twice(patch: Patch) -> None:
    """A process that folds by itself folds each entry twice."""
    once = folding.fold

    def fold(fleet: Fleet, seq: int, at: float, commit: Any) -> Any:
        made = once(fleet, seq, at, commit)
        if made.void or seq % 7:
            return made
        for entry in commit.entries:
            if legality.illegal(made.fleet, entry) is None:
                folding.step(made.fleet, entry)
        made.fleet.voids += 1
        return made

    patch.setattr(steps, "fold", fold)


def snapshots_unchecked(patch: Patch) -> None:
    """The bytes of a snapshot are not compared with its hash."""
    patch.setattr(snapshots, "digest", lambda _: "right")


def ended_is_done(patch: Patch) -> None:
    """A worker that ended in any way has ended well."""

    def is_done(status: Any) -> bool:
        return status is not None and status.state in {WorkerState.EXITED, WorkerState.STOPPED}

    for module in (reports, course):
        patch.setattr(module, "is_done", is_done, raising=False)


def author_without_prev(patch: Patch) -> None:
    """Decisions are appended like observations."""
    seal = Author.seal
    patch.setattr(Author, "seal", lambda *args: replace(seal(*args), expected=None))


def trims_too_far(patch: Patch) -> None:
    """The ledger is dropped up to the newest snapshot."""
    patch.setattr(
        "rackwright.dispatcher.machine.trim_to",
        lambda fleet: fleet.verified[-1][0] if fleet.verified else 0,
    )
    patch.setattr(follower, "find", snapshots.find)


def never_sends_again(patch: Patch) -> None:
    """An append that was not answered is not sent again."""
    patch.setattr(Sending, "_again", lambda *_: None)


def writes_values_once(patch: Patch) -> None:
    """A value whose writing was not answered is not written again."""
    patch.setattr(SimProjector, "_retry", lambda *_: None)


def without_fence(patch: Patch) -> None:
    """Nobody ends a worker whose lease has ended."""
    patch.setattr(SimWorkers, "_fenced", lambda _: None)


def join_without_the_living(patch: Patch) -> None:
    """A node that joins lists nobody as running."""
    patch.setattr(returns, "ALIVE", frozenset())


def refused_means_absent(patch: Patch) -> None:
    """A commit that was refused is taken for lost, though an earlier sending of it is in."""
    settled = Flight.settled

    def forgetful(self: Flight, folded: int) -> Any:
        if isinstance(self.outcome, Refused):
            self.found = None
        return settled(self, folded)

    patch.setattr(Flight, "settled", forgetful)


def started_when_prepared(patch: Patch) -> None:
    """A worker that only waits at its gate is counted as up."""
    is_up = reports.is_up

    def counted(status: Any) -> bool:
        return is_up(status) or (status is not None and status.state is WorkerState.PREPARED)

    for module in (reports, starts, verdicts):
        patch.setattr(module, "is_up", counted)


def answers_again(patch: Patch) -> None:
    """A wish that has been answered is answered again."""
    patch.setattr(Fleet, "answered", lambda *_: False)


MUTANTS: tuple[Callable[[Patch], None], ...] = (
    without_compare,
    without_compare_and_chain,
    without_legality,
    without_gates,
    without_gates_in_the_fold,
    without_waiting_for_leases,
    without_recall,
    without_sessions,
    old_values_win,
    fold_twice,
    snapshots_unchecked,
    ended_is_done,
    author_without_prev,
    trims_too_far,
    never_sends_again,
    writes_values_once,
    without_fence,
    join_without_the_living,
    refused_means_absent,
    started_when_prepared,
    answers_again,
)
