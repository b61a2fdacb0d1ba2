"""A silent node with witnesses: the short wait if they promise, the long one if they do not."""

from dataclasses import replace

import pytest

from rackwright.core.machine import Attend, Heard
from rackwright.wire.entries.node import NodeFailed, NodeJoined
from rackwright.wire.ids import NodeId, RackId, SessionId
from rackwright.wire.nodes import Witnesses
from rackwright.wire.policy import Policy
from tests.support.fleets import cell
from tests.support.monitors import SUSPECTED, Bench, W, bench, every, silence

BAD = "r0-n01"
WITNESSES = ("r0-n02", "r0-n03", "r1-n01", "r1-n02", "r1-n03")
TERMS = Witnesses(nodes=tuple(map(NodeId, WITNESSES)), step_s=30.0, alone_s=1800.0)
W2 = 1.05 * 1805


@pytest.fixture
def b() -> Bench:
    made = cell(racks=2, nodes=6, policy=Policy(alone_s=1800.0))
    made.join(BAD, witnesses=TERMS)
    return bench(made)


def promising(b: Bench, until: float, beating: list[str], bound: tuple[str, ...]) -> None:
    """All of `beating` are heard every 2 s, the `bound` of them with a promise of 13 s."""
    while b.mono < until:
        b.mono = min(until, b.mono + 2.0)
        for name in beating:
            hear(b, name, head=b.fleet.seq, steady_s=13.0 if name in bound else 0.0)
        b.settle()


def hear(b: Bench, name: str, **more: float) -> None:
    node = b.node(name)
    rack = RackId(name.partition("-")[0])
    session = SessionId(node.session or "none")
    b.tell(b.make(Heard, node=node.name, rack=rack, session=session, n=1, **more))


def failed(b: Bench) -> list[str]:
    return [str(one.node) for one in b.entries if isinstance(one, NodeFailed)]


@pytest.mark.parametrize("bound", [WITNESSES, WITNESSES[:3], WITNESSES[2:]])
def test_a_lone_node_is_failed_after_the_short_wait(b: Bench, bound: tuple[str, ...]) -> None:
    rest = silence(b, BAD)
    b.until(SUSPECTED, beating=rest)
    assert b.types() == ["node.suspected"]
    promising(b, SUSPECTED + W - 0.5, rest, bound)
    assert failed(b) == []
    promising(b, SUSPECTED + W + 0.5, rest, bound)
    assert failed(b) == [BAD]
    assert "node.unconfirmed" not in b.notes()


def test_without_promises_it_is_waited_for_as_long_as_witnesses_may_carry_it(b: Bench) -> None:
    rest = silence(b, BAD)
    b.until(SUSPECTED, beating=rest)
    promising(b, SUSPECTED + W + 20.0, rest, WITNESSES[:2])
    assert failed(b) == []
    assert [one for one in b.noted() if one[0] == "node.unconfirmed"] == [
        (
            "node.unconfirmed",
            {"node": BAD, "witnesses": list(WITNESSES), "waits_s": round(W2, 3)},
        )
    ]
    promising(b, SUSPECTED + W2 - 2.0, rest, WITNESSES[:2])
    assert failed(b) == []
    promising(b, SUSPECTED + W2 + 2.0, rest, WITNESSES[:2])
    assert failed(b) == [BAD]


def test_a_promise_that_cannot_be_dated_is_none(b: Bench) -> None:
    """It may have been under way since before the suspicion."""
    rest = silence(b, BAD)
    b.until(SUSPECTED, beating=rest)
    while b.mono < SUSPECTED + W + 20.0:
        b.mono += 2.0
        for name in rest:
            hear(b, name, head=1, steady_s=13.0)
        b.settle()
    assert failed(b) == []


def test_a_monitor_hears_the_witnesses_in_racks_of_another_copy(b: Bench) -> None:
    b.copies(3, 0)
    assert (b.state.owns(RackId("r0")), b.state.owns(RackId("r1"))) == (True, False)
    rest = [name for name in every(b, BAD) if name.startswith("r0")]
    b.until(104.0, beating=[*rest, BAD])
    assert [one for one in b.said if isinstance(one, Attend)] == []
    b.until(SUSPECTED + 1.0, beating=rest)
    wanted = tuple((RackId("r1"), NodeId(name)) for name in WITNESSES[2:])
    assert [one for one in b.said if isinstance(one, Attend)] == [Attend(nodes=wanted)]
    promising(b, SUSPECTED + 4.0, [*rest, BAD], ())  # it is back
    b.until(SUSPECTED + 6.0, beating=[*rest, BAD])
    assert [one for one in b.said if isinstance(one, Attend)][1:] == [Attend(nodes=())]


@pytest.mark.parametrize("port", [0, 7])
def test_who_joins_gets_witnesses_if_it_can_be_asked(b: Bench, port: int) -> None:
    b.status("r1-n00", session="s-new", port=port)
    joined = [one for one in b.settle() if isinstance(one, NodeJoined)]
    names = ("r1-n01", "r1-n02", "r0-n01", "r0-n02", "r0-n03")
    expected = replace(TERMS, nodes=tuple(map(NodeId, names))) if port else None
    assert [one.witnesses for one in joined] == [expected]
    assert b.node("r1-n00").witnesses == expected
