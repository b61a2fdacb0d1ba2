"""Subjects and patterns."""

from __future__ import annotations

import pytest

from rackwright.bus.errors import WrongSubject
from rackwright.bus.match import check_below, is_plain, matches


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
        ("a.b", "a.b.c", False),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*.c", "a.b.c", True),
        ("a.*.c", "a.b.d", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("*.>", "a.b", True),
        ("*.>", "a", False),
        ("rack1.>", "rack10.n", False),
    ],
)
def test_matching(pattern: str, subject: str, expected: bool) -> None:
    assert matches(pattern, subject) is expected


@pytest.mark.parametrize("subject", ["", "a b", "a.*", "a.>", "a..b", ".a", "a.", "a\r\nPUB x"])
def test_what_nobody_may_publish_on(subject: str) -> None:
    assert not is_plain(subject)


def test_a_subject_must_lie_below_its_root() -> None:
    check_below("rackwright.lab.wish.", "rackwright.lab.wish.ann.submit")
    for subject in ("rackwright.lab.wish.", "rackwright.lab.wishes.ann", "rackwright.lab.wish.>"):
        with pytest.raises(WrongSubject):
            check_below("rackwright.lab.wish.", subject)
