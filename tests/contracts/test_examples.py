"""What was written once can be read for ever, by us and by anybody who has the schema."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rackwright.wire.catalog import ALL_TYPES
from rackwright.wire.codec import (
    decode,
    decode_commit,
    decode_wish,
    encode,
    kind_of,
    to_json,
)
from rackwright.wire.entries import ENTRIES
from tests.contracts.files import example, examples, schema


def read(name: str, data: bytes) -> Any:
    """Read an example as the services would."""
    if name in ENTRIES:
        return decode_commit(name, data)
    if name.endswith(".bare"):
        return decode_wish(name.removesuffix(".bare"), data)[0]
    return decode(kind_of(name), data)


def holds(new: Any, old: Any) -> bool:
    """Whether everything that `old` says is said by `new`, which may say more."""
    match old:
        case dict():
            return isinstance(new, dict) and all(
                key in new and holds(new[key], value) for key, value in old.items()
            )
        case list():
            return (
                isinstance(new, list)
                and len(new) == len(old)
                and all(holds(ours, theirs) for ours, theirs in zip(new, old, strict=True))
            )
        case _:
            return bool(new == old and type(new) is type(old))


def test_every_type_has_its_example() -> None:
    bare = {name for name in examples() if name.endswith(".bare")}
    assert set(examples()) - bare == set(ALL_TYPES)
    assert "wish.submit.bare" in bare


@pytest.mark.parametrize("name", examples())
def test_written_anew_it_means_the_same(name: str) -> None:
    message = read(name, example(name))
    assert read(name, encode(message)) == message
    assert holds(json.loads(encode(message)), json.loads(example(name)))
    assert holds(json.loads(to_json(message, indent=True)), json.loads(encode(message)))


@pytest.mark.parametrize("name", examples())
def test_the_schema_agrees(name: str) -> None:
    validator = Draft202012Validator(schema(name))
    Draft202012Validator.check_schema(schema(name))
    assert list(validator.iter_errors(json.loads(example(name)))) == []


@pytest.mark.parametrize("name", examples())
def test_the_schema_refuses_another_type(name: str) -> None:
    validator = Draft202012Validator(schema(name))
    other = {**json.loads(example(name)), "type": "job.dreamt"}
    assert list(validator.iter_errors(other)) != []


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [
        ({"a": 1, "b": [2]}, {"a": 1}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({"a": True}, {"a": 1}, False),
    ],
)
def test_holds(new: Any, old: Any, same: bool) -> None:
    assert holds(new, old) is same
