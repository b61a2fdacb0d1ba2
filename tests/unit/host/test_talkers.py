"""A node that reports without end is heard no more than others can bear."""

from rackwright.host.talkers import Talkers


def test_each_subject_has_so_many_a_second_and_no_more() -> None:
    talkers = Talkers(most=2)
    said = [("a", 1.0), ("a", 1.5), ("b", 1.6), ("a", 1.9), ("a", 2.0), ("b", 2.1), ("a", 2.2)]
    assert [talkers.too_much(*one) for one in said] == [False, False, False, True, *[False] * 3]
    assert talkers.too_much("a", 2.999)
    assert talkers.excess == 2
