"""Rules of protocol P2 left out one at a time; each patches the code that holds the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rackwright.agent import obey
from rackwright.agent.hold import Hold
from rackwright.agent.pretend import NS, PretendedWorkers
from rackwright.agent.records import WorkerRecord, WorkerSpec
from rackwright.agent.supervisor import Supervisor
from rackwright.core import projection
from rackwright.core.evolve import evolve
from rackwright.core.legality import nodes as legality
from rackwright.core.policy.leases import Freshness
from rackwright.health_monitor import beats, returns, silence
from rackwright.health_monitor import machine as monitor
from tests.simulation.fencing import sizes
from tests.simulation.fencing.hosts import NOW
from tests.simulation.fencing.sizes import Size

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def gates(patch: Patch) -> None:
    """A worker starts although the one before it has not ended."""
    patch.setattr(projection, "closed_gates", lambda *_: ())


def running_list(patch: Patch) -> None:
    """A node that joins lists nobody as running."""
    patch.setattr(returns, "ALIVE", frozenset())


def wait(patch: Patch) -> None:
    """The suspected are declared dead at once."""
    patch.setattr(silence, "declare_after", lambda _: 0.0)


def whole_wait(patch: Patch) -> None:
    """They are declared dead as soon as a lease of now must be over, killed or not."""
    patch.setattr(silence, "declare_after", lambda policy: policy.fence_after_s)


def recall(patch: Patch) -> None:
    """A suspected session is echoed as long as it is heard."""
    for module in (beats, monitor):
        patch.setattr(module, "may_echo", lambda node, session: node.session == session)


def freshness(patch: Patch) -> None:
    """A monitor echoes without a proof that it reaches the quorum."""
    patch.setattr(Freshness, "holds", lambda *_: True)


def supervisor(patch: Patch) -> None:
    """Nobody ends a worker whose lease has ended."""
    patch.setattr(Supervisor, "is_fenced", lambda self: not self.leader)


def sessions(patch: Patch) -> None:
    """An agent obeys what was meant for an earlier session of its node."""

    def accept(seen: Any, _session: Any, node: Any, value: Any) -> Any:
        return value.nodes.get(node) if value.seq >= seen.seq else None

    patch.setattr(obey, "accept", accept)


def _prepare_anything(self: PretendedWorkers, spec: WorkerSpec) -> WorkerRecord:
    self._spent.discard(spec.worker_id)
    known = self._records.get(spec.worker_id)
    if known is not None and known.ended:
        del self._records[spec.worker_id]
    return _prepare(self, spec)


_prepare = PretendedWorkers.prepare


def order_of_values(patch: Patch) -> None:
    """An older value is obeyed after a newer one, and a worker that has ended is started again."""

    def accept(_seen: Any, session: Any, node: Any, value: Any) -> Any:
        mine = value.nodes.get(node)
        return mine if mine is not None and mine.session == session else None

    patch.setattr(obey, "accept", accept)
    patch.setattr(PretendedWorkers, "prepare", _prepare_anything)


def ended_is_final(patch: Patch) -> None:
    """A worker that has ended by the ledger is projected still, and its node starts it again."""
    lines = projection._lines

    def all_lines(fleet: Any, job: Any, part: Any, ended: Any) -> Any:
        return lines(fleet, evolve(job, wounds=()), part, ended)

    patch.setattr(projection, "_lines", all_lines)
    patch.setattr(PretendedWorkers, "prepare", _prepare_anything)


def lease_to_start(patch: Patch) -> None:
    """A worker is started without a lease."""
    patch.setattr(PretendedWorkers, "_check_lease", lambda _: None)
    has_lease = Supervisor.has_lease
    patch.setattr(
        Supervisor, "has_lease", lambda self, now: not self.leader or has_lease(self, now)
    )


def compare_of_observations(patch: Patch) -> None:
    """An observation counts although its node has moved on since."""

    def seen(fleet: Any, entry: Any) -> Any:
        return fleet.node(entry.node) if entry.node in fleet.places else "no node"

    patch.setattr(legality, "_seen", seen)


def newest_session(patch: Patch) -> None:
    """A status is believed although a later session of its node was admitted since."""
    is_news = returns._is_news

    def news(state: Any, node: Any, event: Any) -> bool:
        state.joined_at.clear()
        return is_news(state, node, event)

    patch.setattr(returns, "_is_news", news)


def sending(patch: Patch) -> None:
    """The lease runs from the echo and not from the sending of the heartbeat."""

    def echoed(self: Hold, session: Any, n: int, lease_s: float, head: int) -> bool:
        if session != self.session:
            return False
        self.until_ns = NOW * NS + int(lease_s * NS)
        return True

    patch.setattr(Hold, "echoed", echoed)


def proof_of_the_leaseless(patch: Patch) -> None:
    """Work that runs without a lease is taken for dead like any other."""
    patch.setattr(silence, "runs_on", lambda *_: [])


MUTANTS: tuple[tuple[Mutant, Size], ...] = (
    (gates, sizes.CRASH_UNFIT),
    (running_list, sizes.TWO_CRASHES),
    (wait, sizes.TWO_SUSPICIONS),
    (whole_wait, sizes.TWO_SUSPICIONS),
    (recall, sizes.TWO_SUSPICIONS),
    (freshness, sizes.TWO_SUSPICIONS),
    (supervisor, sizes.TWO_SUSPICIONS),
    (sessions, sizes.REBOOT),
    (order_of_values, sizes.CRASH_UNFIT),
    (ended_is_final, sizes.REBOOT),
    (lease_to_start, sizes.REBOOT),
    (compare_of_observations, sizes.TWO_SUSPICIONS),
    (newest_session, sizes.TWO_CRASHES),
    (sending, sizes.PARTITION),
    (proof_of_the_leaseless, sizes.LEASELESS),
)
