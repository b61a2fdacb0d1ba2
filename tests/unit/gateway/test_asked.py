"""Questions are read strictly, and what is wrong with them is named."""

import pytest

from rackwright.gateway.answers import ANSWERS
from rackwright.gateway.asked import (
    QUESTIONS,
    BadQuestion,
    Events,
    Job,
    Jobs,
    Racks,
    from_json,
    from_texts,
)
from rackwright.gateway.page import after, fitting, newest
from rackwright.wire.ids import JobId


def test_every_question_has_an_answer() -> None:
    assert list(QUESTIONS) == list(ANSWERS)


def test_nothing_at_all_asks_for_the_defaults() -> None:
    assert from_json("jobs", b"") == Jobs()
    assert from_json("racks", b" {}") == Racks()
    assert from_texts("jobs", {}) == Jobs()


def test_texts_of_a_url_are_read_as_their_fields_are() -> None:
    texts = {"type": "123", "since": "7", "limit": "5"}
    assert from_texts("events", texts) == Events(type="123", since=7, limit=5)
    assert from_texts("jobs", {"ended": "true", "owner": "true"}) == Jobs(ended=True, owner="true")
    assert from_texts("job", {"job": "17"}) == Job(job=JobId("17"))


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("jobs", b'{"limit": 0}', "limit: must be greater than or equal to 1"),
        ("jobs", b'{"limit": "5"}', "limit: must be a whole number"),
        ("jobs", b'{"stat": "queued"}', "stat: .*known are state, owner, queue"),
        ("jobs", b"[1]", "must be"),
        ("jobs", b"\xff", "JSON"),
        ("job", b"{}", "job: "),
        ("job", b'{"job": "a.b"}', "job: "),
        ("node", b'{"node": ">"}', "node: "),
        ("events", b'{"since": -1}', "since: must be greater than or equal to 0"),
        ("stats", b'{"x": 1}', "x: "),
        ("jobs", b" " * 20_000 + b"{}", "bytes"),
    ],
)
def test_bad_questions_name_the_field(name: str, data: bytes, text: str) -> None:
    with pytest.raises(BadQuestion, match=text) as error:
        from_json(name, data)
    assert error.value.status == 400


@pytest.mark.parametrize("texts", [{"limit": "many"}, {"limit": "1.5"}, {"limit": ""}])
def test_bad_texts_name_the_field(texts: dict[str, str]) -> None:
    with pytest.raises(BadQuestion, match="limit: must be a whole number"):
        from_texts("jobs", texts)


def test_unknown_questions_are_answered_with_those_that_are_known() -> None:
    with pytest.raises(BadQuestion, match=r"no question 'nope'.*jobs, job, racks") as error:
        from_json("nope", b"")
    assert error.value.status == 404


def test_pages_end_at_the_limit_or_at_the_size() -> None:
    assert fitting("abc", 5) == (("a", "b", "c"), False)
    assert fitting("abc", 2) == (("a", "b"), True)
    assert fitting(["x" * 50, "y" * 50, "z"], 9, most=60) == (("x" * 50,), True)
    assert fitting(["x" * 500], 9, most=60) == (("x" * 500,), False)
    assert newest("abc", 2) == ("b", "c")
    assert after(["a", "b", "c"], str, "a") == ["b", "c"]
    assert after(["a"], str, None) == ["a"]
