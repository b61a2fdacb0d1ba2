"""Protocol P2: a node is never declared fenced while a lease that an echo granted may run.

Argued in the protocol and checked there by exhaustion for small worlds; here the real machines are
driven through random ones. Each rule is left out in turn, to show that it is needed and that these
worlds would notice.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rackwright.core.policy import leases
from rackwright.core.racks import Node
from rackwright.health_monitor import beats, machine, silence
from rackwright.wire.ids import SessionId
from rackwright.wire.policy import Policy
from tests.support.lease_world import LeaseOutlivesFence, Trouble, World

STEPS = 250
SEEDS = 400

odds = st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.98])
clock = st.sampled_from([0.98, 1.0, 1.02])
troubles = st.builds(
    Trouble,
    beat_lost=st.tuples(odds, odds),
    silent_from=st.floats(1.0, 25.0),
    beat_late=odds,
    ledger_late=odds,
    append_late=odds,
    ack_late=odds,
    stopped=st.sampled_from([0.0, 0.02, 0.2]),
    resumed=st.sampled_from([0.02, 0.1, 0.5]),
    restarted=st.sampled_from([0.0, 0.005, 0.05]),
    agent_clock=clock,
    clocks=st.tuples(clock, clock),
)


@given(trouble=troubles, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_lease_outlives_the_fence(trouble: Trouble, seed: int) -> None:
    World(trouble, Random(seed)).run(STEPS)


def drawn(seed: int) -> World:
    """A world of the kind in which the rules matter: the copies differ in what they hear."""
    random = Random(seed)
    trouble = Trouble(
        beat_lost=random.choice([(1.0, 0.0), (0.9, 0.3), (0.6, 0.6), (1.0, 0.5)]),
        silent_from=random.uniform(1.5, random.choice([3.0, 10.0])),
        ledger_late=random.choice([0.0, 0.9, 0.97]),
        append_late=random.choice([0.0, 0.5, 0.9]),
        ack_late=random.choice([0.0, 0.5]),
        stopped=random.choice([0.0, 0.05]),
        resumed=0.1,
        restarted=random.choice([0.0, 0.01]),
    )
    return World(trouble, random)


def test_the_drawn_worlds_get_as_far_as_the_fence_and_keep_the_promise() -> None:
    worlds = [drawn(seed).run(STEPS) for seed in range(40)]
    fenced = [world for world in worlds if world.fenced is not None]
    assert len(fenced) >= 10
    assert any(world.suspected > 1 for world in worlds), "some were cleared in between"


def without_freshness(patch: pytest.MonkeyPatch) -> None:
    """A copy echoes whatever its fold shows, however old that is."""
    patch.setattr(leases.Freshness, "holds", lambda self, policy, mono: True)


def without_wait(patch: pytest.MonkeyPatch) -> None:
    """The suspected are declared dead at once."""
    patch.setattr(silence, "declare_after", lambda policy: 0.0)


def without_kill_time(patch: pytest.MonkeyPatch) -> None:
    """W counts the lease only, not what a copy does not know yet."""
    patch.setattr(silence, "declare_after", _lease_only)


def _lease_only(policy: Policy) -> float:
    return policy.fence_after_s


def without_recall(patch: pytest.MonkeyPatch) -> None:
    """A suspected session is echoed as long as it is heard."""
    patch.setattr(beats, "may_echo", _any_session)
    patch.setattr(machine, "may_echo", _any_session)


def _any_session(node: Node, session: SessionId) -> bool:
    return node.session == session


@pytest.mark.parametrize(
    "leave_out", [without_freshness, without_wait, without_kill_time, without_recall]
)
def test_each_rule_is_needed(leave_out: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(leave_out)
    leave_out(monkeypatch)
    for seed in range(SEEDS):
        try:
            drawn(seed).run(STEPS)
        except LeaseOutlivesFence:
            return
    pytest.fail(f"{SEEDS} worlds did not notice")
