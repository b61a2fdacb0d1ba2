"""A monitor that hears less than half of its nodes doubts itself, and takes nobody for dead."""

import pytest

from tests.support.fleets import cell
from tests.support.monitors import SUSPECTED, Bench, W, bench, every, silence


@pytest.fixture
def b() -> Bench:
    return bench(cell(racks=2, nodes=6))


def test_a_copy_that_hears_less_than_half_of_its_nodes_suspects_nobody(b: Bench) -> None:
    """F13: M2 is cut off from its nodes; 2,500 healthy nodes would be declared failed."""
    rest = silence(b, *every(b)[:7])
    assert b.until(200.0, beating=rest) == []
    assert b.notes() == ["monitor.blind"]
    b.hear(*every(b))
    b.until(204.0, beating=every(b))
    assert b.notes() == ["monitor.blind", "monitor.sees"]
    assert b.types() == []


def blind_with_two_suspects(b: Bench) -> list[str]:
    """Two nodes are suspected, then five more fall silent, until W after the suspicion is over."""
    others = silence(b, "r0-n00", "r0-n01")
    b.until(SUSPECTED + 1, beating=others)
    assert b.types() == ["node.suspected"] * 2
    rest = others[5:]
    b.until(SUSPECTED + W + 5, beating=rest)
    assert b.notes() == ["monitor.blind"]
    assert b.types() == ["node.suspected"] * 2
    return others


def test_who_was_suspected_before_its_monitor_went_blind_is_not_declared_dead_by_it(
    b: Bench,
) -> None:
    others = blind_with_two_suspects(b)
    b.hear(*others)
    b.until(b.mono + 3, beating=others)
    assert b.notes() == ["monitor.blind", "monitor.sees"]
    b.hear("r0-n00", "r0-n01")
    b.until(b.mono + 60, beating=every(b))
    assert b.types() == [*["node.suspected"] * 2, *["node.cleared"] * 2]


def test_who_stays_silent_when_the_monitor_sees_again_is_declared_dead(b: Bench) -> None:
    others = blind_with_two_suspects(b)
    b.hear(*others)
    b.until(b.mono + 8, beating=others)
    assert b.types()[:4] == [*["node.suspected"] * 2, *["node.failed"] * 2]


def test_half_of_the_nodes_are_enough(b: Bench) -> None:
    rest = silence(b, *b.cell.rack("r0").spec.nodes)
    b.until(113.0, beating=rest)
    assert b.types() == ["rack.isolated"]
