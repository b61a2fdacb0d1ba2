"""Whatever somebody publishes, the error names the field and says what would be right."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from rackwright.wire.codec import (
    MAX_MESSAGE,
    MAX_WISH,
    UnknownType,
    Unreadable,
    decode,
    decode_commit,
    decode_of_node,
    decode_wish,
    read_value,
    seal,
)
from rackwright.wire.entries.slice import DefragPlanned
from rackwright.wire.ids import (
    CellName,
    InvalidId,
    JobId,
    NodeId,
    Owner,
    RackId,
    WorkerId,
    check_name,
    parse_worker,
    worker_id,
)
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Commit
from rackwright.wire.signals import Fault, Heartbeat
from rackwright.wire.subjects import (
    InvalidSubject,
    Subjects,
    WishSubject,
    parse_entry,
    parse_node,
    parse_wish,
    shard_of,
)
from tests.contracts.files import example

CELL = CellName("alpha")
AT = Subjects(CELL)


def with_field(name: str, path: str, value: Any) -> bytes:
    """The example with one field changed; `path` has dots, numbers are places in lists."""
    message = json.loads(example(name))
    node = message
    *steps, last = path.split(".")
    for step in steps:
        node = node[int(step)] if step.isdigit() else node[step]
    node[last] = value
    return json.dumps(message).encode()


@pytest.mark.parametrize(
    ("name", "path", "value", "field", "problem"),
    [
        ("job.placed", "type", "job.dreamt", "type", "'job.placed' is expected"),
        ("job.placed", "v", 2, "v", "version 2 is not known, 1 is"),
        ("job.placed", "v", "1", "v", "version 1 is not known"),
        ("job.placed", "id", "a b", "id", "1 to 127 letters"),
        ("job.placed", "cell", "a.b", "cell", "1 to 63 letters"),
        ("job.placed", "at", True, "at", "must be a number"),
        ("job.placed", "entries", [], "entries", "at least 1 item"),
        ("job.placed", "colour", "red", "colour", "is not known"),
        ("job.placed", "entries.0.colour", "red", "entries.0.colour", "is not known"),
        ("job.placed", "entries.0.job", "a.b", "entries.0.job", "1 to 63 letters"),
        ("job.placed", "entries.0.job", "*", "entries.0.job", "1 to 63 letters"),
        ("job.placed", "entries.0.job", ">", "entries.0.job", "1 to 63 letters"),
        ("job.placed", "entries.0.job", "a\n", "entries.0.job", "1 to 63 letters"),
        ("job.placed", "entries.0.job", "x" * 10_000, "entries.0.job", "1 to 63 letters"),
        ("job.placed", "entries.0.job", "", "entries.0.job", "1 to 63 letters"),
        ("job.placed", "entries.0.membership", "1", "entries.0.membership", "whole number"),
        ("job.placed", "entries.0.membership", 0, "entries.0.membership", "greater"),
        ("job.placed", "entries.0.membership", 2**64, "entries.0.membership", "less"),
        ("job.placed", "entries.0.slices.1.nodes", 2**62, "entries.0.slices.1.nodes", "less"),
        ("worker.failed", "entries.0.worker", "j/01/1", "entries.0.worker", "train/0/1"),
    ],
)
def test_entries(name: str, path: str, value: Any, field: str, problem: str) -> None:
    with pytest.raises(Unreadable) as caught:
        decode_commit(name, with_field(name, path, value))
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert len(str(caught.value)) < 500


def test_newer_version_is_said_before_its_new_fields() -> None:
    newer = json.loads(with_field("job.placed", "v", 2))
    newer["entries"][0]["colour"] = "red"
    with pytest.raises(UnknownType, match=r"v: job\.placed version 2"):
        decode_commit("job.placed", json.dumps(newer).encode())


def test_unknown_entry_is_told_apart() -> None:
    with pytest.raises(UnknownType, match=r"type: no entry 'job\.dreamt'"):
        decode_commit("job.dreamt", example("job.placed"))


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("body.xid", -1, "body.xid"),
        ("body.kind", "mood", "body.kind"),
        ("body.count", 0, "body.count"),
        ("body.words", [2**70], "body.words.0"),
        ("body.line", "x" * 513, "body.line"),
        ("body.session", "s/1", "body.session"),
        ("body", None, "body"),
        ("type", "heartbeat", "type"),
        ("v", 9, "v"),
    ],
)
def test_signals(path: str, value: Any, field: str) -> None:
    with pytest.raises(Unreadable) as caught:
        decode(Fault, with_field("signal.fault", path, value))
    assert caught.value.field == field


def test_signals_may_say_more_than_we_know() -> None:
    known = decode(Fault, example("signal.fault"))
    assert decode(Fault, with_field("signal.fault", "body.mood", "grim")) == known


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"nodes": 0}, "spec.nodes"),
        ({"nodes": -1}, "spec.nodes"),
        ({"nodes": "2"}, "spec.nodes"),
        ({"nodes": 2.5}, "spec.nodes"),
        ({"nodes": True}, "spec.nodes"),
        ({"nodes": 10**9}, "spec.nodes"),
        ({"gpus": -1}, "spec.gpus"),
        ({"cpus": 0}, "spec.cpus"),
        ({"memory_gb": -1}, "spec.memory_gb"),
        ({"slice_nodes": 63}, "spec.slice_nodes"),
        ({"priority": 101}, "spec.priority"),
        ({"time_limit_s": 0}, "spec.time_limit_s"),
        ({"name": "a.b"}, "spec.name"),
        ({"nodez": 2}, "spec.nodez"),
        ({"n" * 10_000: 2}, "spec." + "n" * 112 + "..."),
        ({"topology": "sideways"}, "spec.topology"),
        ({"groups": [{"name": "g"}]}, "spec.groups.0.nodes"),
        ({"env": {"A=B": "c"}}, "spec.env.A=B.[key]"),
        ({"run": "a\0b"}, "spec.run"),
        ({"notice_signal": "USR1"}, "spec.notice_signal"),
        ({"parallel": {"tp": 0}}, "spec.parallel.tp"),
        ({"checkpoint": {"interval_s": -3}}, "spec.checkpoint.interval_s"),
    ],
)
def test_bare_submit(spec: dict[str, Any], field: str) -> None:
    wish = {"job": "j-1", "spec": {"name": "x", **spec}}
    with pytest.raises(Unreadable) as caught:
        decode_wish("wish.submit", json.dumps(wish).encode())
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not JSON"),
        (b"hello", "not JSON"),
        (b"\xff\xfe", "not JSON in UTF-8"),
        (b'{"job": "\xc3\x28"}', "not JSON in UTF-8"),
        (b'{"job": "a", "why": "\\ud800"}', "not JSON in UTF-8"),
        (b'{"job": "a", "not_after": NaN}', "not JSON"),
        (b'{"job": "a", "not_after": 1e999}', "not JSON"),
        (b'{"job": "a", "why": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"job": "a", "why": "' + b"x" * 1_000_000 + b'"}', f"at most {MAX_WISH}"),
    ],
)
def test_bytes_that_are_no_wish(data: bytes, problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        decode_wish("wish.cancel", data)


@pytest.mark.parametrize("type_name", ["wish.dream", "job.placed", "", "wish." + "x" * 10_000])
def test_unknown_wish(type_name: str) -> None:
    with pytest.raises(UnknownType) as caught:
        decode_wish(type_name, b'{"job": "a"}')
    assert caught.value.field == "type"
    assert len(str(caught.value)) < 400


def test_a_wish_for_another_cell_is_not_ours() -> None:
    theirs = example("wish.cancel")
    decode_wish("wish.cancel", theirs, cell=CELL)
    with pytest.raises(Unreadable, match="cell: is 'alpha', this is 'beta'"):
        decode_wish("wish.cancel", theirs, cell=CellName("beta"))


def test_a_wish_comes_bare_or_enveloped() -> None:
    bare, nameless = decode_wish("wish.cancel", b'{"job": "llm-pretrain-7"}')
    enveloped, name = decode_wish("wish.cancel", example("wish.cancel"))
    assert (nameless, name) == (None, json.loads(example("wish.cancel"))["id"])
    assert type(bare) is type(enveloped)


def test_an_envelope_of_another_wish_is_refused() -> None:
    with pytest.raises(Unreadable, match=r"type: is 'wish\.cancel', 'wish\.resume' is expected"):
        decode_wish("wish.resume", example("wish.cancel"))


@pytest.mark.parametrize("data", [b"x" * (MAX_MESSAGE + 1), b"\xff", b"[1]", b'{"v": 1}', b"nul"])
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(Unreadable):
        decode_commit("job.placed", data)
    with pytest.raises(Unreadable):
        decode(Fault, data)


def test_what_json_cannot_say_is_found_before_it_is_appended() -> None:
    commit: Commit[Any] = decode_commit("defrag.planned", example("defrag.planned"))
    assert decode_commit("defrag.planned", seal(commit)) == commit
    (plan,) = commit.entries
    assert isinstance(plan, DefragPlanned)
    for wrong, field in (
        (replace(plan, cost_gpu_h=math.inf), "entries.0.cost_gpu_h"),
        (replace(plan, hold_gpu_h=math.nan), "entries.0.hold_gpu_h"),
        (replace(plan, membership=0), "entries.0.membership"),
        (replace(plan, membership=2**70), ""),
    ):
        with pytest.raises(Unreadable) as caught:
            seal(replace(commit, entries=(wrong,)))
        assert caught.value.field == field
    with pytest.raises(Unreadable, match="entries"):
        seal(replace(commit, entries=(plan,) * 65))


@pytest.mark.parametrize(
    ("value", "field"),
    [({"name": "x", "nodes": 0}, "nodes"), ({"name": "x", "env": {"A": {1}}}, ""), (7, "")],
)
def test_values_from_files_are_checked_as_strictly(value: object, field: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_value(JobSpec, value)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("data", "subject", "field"),
    [
        (example("heartbeat"), AT.heartbeat(RackId("r07"), NodeId("r07-n04")), "body.node"),
        (example("heartbeat"), AT.heartbeat(RackId("r08"), NodeId("r07-n03")), "body.rack"),
        (
            with_field("heartbeat", "cell", "beta"),
            AT.heartbeat(RackId("r07"), NodeId("r07-n03")),
            "cell",
        ),
    ],
)
def test_a_node_speaks_of_itself_only(data: bytes, subject: str, field: str) -> None:
    with pytest.raises(Unreadable) as caught:
        decode_of_node(Heartbeat, data, cell=CELL, stream="hb", subject=subject)
    assert caught.value.field == field


def test_a_node_is_heard_on_its_own_subject() -> None:
    subject = AT.heartbeat(RackId("r07"), NodeId("r07-n03"))
    said = decode_of_node(Heartbeat, example("heartbeat"), cell=CELL, stream="hb", subject=subject)
    assert said == decode(Heartbeat, example("heartbeat"))


@pytest.mark.parametrize(
    "name",
    ["a.b", "*", ">", "a*", "", "a b", "a\n", "-a", "x" * 64, "x" * 10_000, "ä", "a/b", "\0"],
)
def test_names_that_are_no_subject_token(name: str) -> None:
    with pytest.raises(InvalidId) as caught:
        check_name("job", name)
    assert caught.value.field == "job"
    assert len(str(caught.value)) < 300
    for build in (
        lambda: AT.job_key(JobId(name)),
        lambda: AT.wish(Owner(name), "wish.submit"),
        lambda: AT.status(RackId(name), NodeId("n")),
        lambda: AT.status(RackId("r"), NodeId(name)),
        lambda: Subjects(CellName(name)),
    ):
        with pytest.raises(InvalidId):
            build()


@pytest.mark.parametrize("name", ["a", "A-b_9", "0", "x" * 63])
def test_names_that_are(name: str) -> None:
    assert check_name("job", name) == name


WRONG_SHARD = f"{(int(shard_of(RackId('r07'))) + 1) % 64:02d}"


@pytest.mark.parametrize(
    ("subject", "rule"),
    [
        (AT.status(RackId("r07"), NodeId("n")).replace("alpha", "beta"), "not of cell 'alpha'"),
        (AT.signal(RackId("r07"), NodeId("n")), "not of stream 'status'"),
        (f"rackwright.alpha.status.{WRONG_SHARD}.r07.n", "rack r07 is of shard"),
        ("rackwright.alpha.status.00.r07", "must have 6 tokens"),
        ("other.alpha.status.00.r07.n", "must start with"),
        ("", "must start with"),
        ("rackwright." + "x" * 10_000, "not of cell"),
    ],
)
def test_subjects_that_are_not_ours(subject: str, rule: str) -> None:
    with pytest.raises(InvalidSubject) as caught:
        parse_node(CELL, subject, "status")
    assert rule in caught.value.rule
    assert len(str(caught.value)) < 300


def test_subjects_are_read_as_they_were_built() -> None:
    rack, node = RackId("r07"), NodeId("r07-n03")
    assert parse_node(CELL, AT.status(rack, node), "status") == (rack, node)
    assert parse_entry(CELL, AT.entry("node.repair_requested")) == "node.repair_requested"
    assert parse_wish(CELL, AT.wish(Owner("ann"), "wish.submit")) == WishSubject(
        Owner("ann"), "wish.submit"
    )


@pytest.mark.parametrize("worker", ["j/1", "j/1/1/1", "j.k/1/1", "j/-1/1", "j/01/1", "j/1/1\n", ""])
def test_worker_ids_that_are_none(worker: str) -> None:
    with pytest.raises(InvalidId, match="worker"):
        parse_worker(WorkerId(worker))


def test_worker_ids_are_read_as_they_were_built() -> None:
    assert parse_worker(worker_id(JobId("j"), 37, 4)) == ("j", 37, 4)


@pytest.mark.parametrize(
    ("verb", "right"),
    [
        ("maintenance", "did you mean maintain?"),
        ("submitt", "did you mean submit?"),
        ("zzz", "there are submit, cancel, resume, "),
    ],
)
def test_a_wish_of_no_known_type_is_told_what_there_is(verb: str, right: str) -> None:
    with pytest.raises(UnknownType) as caught:
        decode_wish(f"wish.{verb}", b"{}")
    assert str(caught.value).startswith(f"type: no wish 'wish.{verb}' is known; {right}")
