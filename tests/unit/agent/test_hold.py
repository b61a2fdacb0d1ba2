"""The lease as the agent counts it."""

from rackwright.agent.hold import NS, REMEMBERED, Hold
from rackwright.wire.ids import SessionId

MINE = SessionId("s1")


def test_the_lease_runs_from_the_sending_and_not_from_the_echo() -> None:
    hold = Hold(session=MINE)
    n = hold.sending(100 * NS)
    assert hold.echoed(MINE, n, 30.0, head=7)
    assert (hold.until_ns, hold.head) == (130 * NS, 7)


def test_an_echo_of_another_session_or_of_an_unknown_heartbeat_grants_nothing() -> None:
    hold = Hold(session=MINE)
    n = hold.sending(100 * NS)
    assert not hold.echoed(SessionId("s0"), n, 30.0, head=1)
    assert not hold.echoed(MINE, n + 1, 30.0, head=1)
    assert hold.until_ns == 0


def test_an_older_echo_does_not_shorten_the_lease() -> None:
    hold = Hold(session=MINE)
    first, second = hold.sending(100 * NS), hold.sending(102 * NS)
    assert hold.echoed(MINE, second, 30.0, head=1)
    assert not hold.echoed(MINE, first, 30.0, head=1)
    assert hold.until_ns == 132 * NS


def test_an_echo_without_a_lease_grants_nothing() -> None:
    hold = Hold(session=MINE)
    n = hold.sending(100 * NS)
    hold.until_ns = 100 * NS
    assert not hold.echoed(MINE, n, 0.0, head=1)


def test_only_the_newest_sendings_are_remembered() -> None:
    hold = Hold(session=MINE)
    for at in range(REMEMBERED + 1):
        hold.sending(at)
    assert 1 not in hold.sent
    assert len(hold.sent) == REMEMBERED
