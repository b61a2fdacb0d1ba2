"""What is said again and again is told now and then, with its number."""

from rackwright.host.seldom import APART_S, MOST, Seldom


def test_the_first_is_told_and_the_next_with_those_between() -> None:
    now = [0.0]
    seldom = Seldom(lambda: now[0])
    assert [seldom.count("away") for _ in range(4)] == [1, 0, 0, 0]
    assert seldom.count("full") == 1
    now[0] = APART_S
    assert seldom.count("away") == 4
    assert seldom.count("away") == 0
    now[0] = 3 * APART_S
    assert seldom.count("away") == 2
    assert seldom.count("full") == 1


def test_it_remembers_no_more_than_so_many_texts() -> None:
    seldom = Seldom(lambda: 0.0)
    assert [seldom.count(str(number)) for number in range(MOST + 1)] == [1] * (MOST + 1)
    assert seldom.count(str(MOST)) == 0
    assert seldom.count("0") == 1
