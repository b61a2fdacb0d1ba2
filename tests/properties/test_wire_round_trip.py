"""Whatever can be said can be read, and means the same."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from rackwright.wire.catalog import ALL_TYPES
from rackwright.wire.codec import (
    Unreadable,
    canonical,
    decode,
    decode_commit,
    decode_wish,
    encode,
    kind_of,
    seal,
)
from rackwright.wire.entries import ENTRIES
from rackwright.wire.ids import (
    CellName,
    JobId,
    JobRef,
    NodeId,
    RackId,
    parse_worker,
    worker_id,
)
from rackwright.wire.schema import message_schema
from rackwright.wire.subjects import Subjects, parse_node
from rackwright.wire.wishes import ANY_WISH
from tests.properties.wire_values import messages, values

FEW = settings(max_examples=10, suppress_health_check=list(HealthCheck))
NAMES = values(JobRef)


@pytest.mark.parametrize("type_name", ALL_TYPES)
@FEW
@given(data=st.data())
def test_messages(type_name: str, data: st.DataObject) -> None:
    kind = kind_of(type_name)
    message = data.draw(messages(kind))
    sent = encode(message)
    read: Any = decode_commit(type_name, sent) if type_name in ENTRIES else decode(kind, sent)
    assert read == message
    assert canonical(read) == canonical(message)


@pytest.mark.parametrize("type_name", ENTRIES)
@settings(FEW, max_examples=5)
@given(data=st.data())
def test_what_is_sealed_is_what_was_meant(type_name: str, data: st.DataObject) -> None:
    commit = data.draw(messages(kind_of(type_name)))
    assert decode_commit(type_name, seal(commit)) == commit


@pytest.mark.parametrize("kind", ANY_WISH, ids=lambda kind: kind.TYPE)
@FEW
@given(data=st.data())
def test_bare_wishes(kind: Any, data: st.DataObject) -> None:
    wish = data.draw(values(kind))
    assert decode_wish(kind.TYPE, encode(wish)) == (wish, None)


@pytest.mark.parametrize("type_name", ["job.placed", "job.queued", "value.job", "signal.fault"])
@settings(FEW, max_examples=10)
@given(data=st.data())
def test_the_schema_takes_what_we_write(type_name: str, data: st.DataObject) -> None:
    sent = json.loads(encode(data.draw(messages(kind_of(type_name)))))
    assert list(Draft202012Validator(message_schema(type_name)).iter_errors(sent)) == []


@given(st.sampled_from([wish.TYPE for wish in ANY_WISH]), st.binary(max_size=200))
def test_bytes_are_a_wish_or_unreadable(type_name: str, data: bytes) -> None:
    with suppress(Unreadable):
        decode_wish(type_name, data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["job", "spec", "name", "nodes", "type", "v", "body", "entries"]), inner
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(ALL_TYPES), JSON)
def test_json_is_a_message_or_unreadable(type_name: str, value: Any) -> None:
    data = json.dumps(value).encode()
    with suppress(Unreadable):
        if type_name in ENTRIES:
            decode_commit(type_name, data)
        else:
            decode(kind_of(type_name), data)


@given(NAMES, NAMES, NAMES)
def test_subjects_say_no_more_than_they_mean(cell: str, rack: str, node: str) -> None:
    at = Subjects(CellName(cell))
    for stream, subject in (
        ("status", at.status(RackId(rack), NodeId(node))),
        ("signal", at.signal(RackId(rack), NodeId(node))),
        ("hb", at.heartbeat(RackId(rack), NodeId(node))),
    ):
        assert len(subject.split(".")) == 6
        assert not set(subject) & set("*> \n")
        assert parse_node(CellName(cell), subject, stream) == (rack, node)


@given(NAMES, st.integers(0, 999_999), st.integers(0, 999_999_999))
def test_worker_ids(job: str, rank: int, incarnation: int) -> None:
    assert parse_worker(worker_id(JobId(job), rank, incarnation)) == (job, rank, incarnation)
