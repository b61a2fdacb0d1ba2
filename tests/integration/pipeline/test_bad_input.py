"""Whatever is published, the answer names the field, and no service ends for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import nats
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import MaxPayloadError
from nats.js.errors import APIError

from rackwright.cli.credentials import ADMIN
from rackwright.core.jobs import JobState
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.entries.job import JobFinishing, JobRejected
from rackwright.wire.entries.slice import SliceSwapped
from rackwright.wire.ids import CellName, JobId, NodeId, RackId, SessionId
from rackwright.wire.nodes import RackSpec
from rackwright.wire.signals import Heartbeat, WorkerState, WorkerStatus
from rackwright.wire.subjects import Subjects
from rackwright.wire.wishes import Cancel, DefineRacks
from tests.support.live import Live
from tests.support.world import WITHIN_S

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]
SUBMIT = "rackwright.main.wish.ann.submit"
AT = Subjects(CellName("main"))


@dataclass(slots=True)
class Anybody:
    """A plain client, and the dead letters as they come."""

    bus: Client
    letters: asyncio.Queue[Msg] = field(default_factory=asyncio.Queue)

    async def publish(self, data: bytes, subject: str = SUBMIT) -> int:
        """Store a message; its sequence."""
        return (await self.bus.jetstream().publish(subject, data)).seq

    async def letter(self, seq: int, stream: str) -> str:
        """Why the message at this sequence was set aside."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                letter = await self.letters.get()
                headers = letter.headers or {}
                if letter.subject.endswith(f".{stream}") and headers["Rackwright-Seq"] == str(seq):
                    return headers["Rackwright-Why"]


@pytest_asyncio.fixture(loop_scope="package")
async def anybody(live: Live) -> AsyncIterator[Anybody]:
    """Services that are there before are there afterwards, as the same processes."""
    pids = live.service_pids()
    password = live.stack.credentials.password(ADMIN)
    bus = await nats.connect(live.stack.server.url, user=ADMIN, password=password)
    made = Anybody(bus)
    await bus.subscribe("rackwright.main.dead.>", cb=made.letters.put)
    await bus.flush()
    yield made
    await bus.close()
    assert live.service_pids() == pids


def job(name: str, **spec: Any) -> bytes:
    """A submit as somebody would write it."""
    body = {"job": name, "spec": {"name": "bad", "nodes": 1, "run": "true", **spec}}
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("name", "spec", "named"),
    [
        ("bad-cell", {"nodes": 19}, "nodes"),
        ("bad-slice", {"nodes": 7, "slice_nodes": 7}, "slice_nodes"),
        ("bad-gpus", {"nodes": None, "gpus": 5}, "gpus"),
        ("bad-both", {"gpus": 1}, "nodes"),
        ("bad-run", {"command": ["true"]}, "run"),
    ],
)
async def test_what_can_never_run_is_rejected(
    live: Live, anybody: Anybody, name: str, spec: dict[str, Any], named: str
) -> None:
    since = live.now()
    seq = await anybody.publish(job(name, **spec))
    rejected = await live.entry(JobRejected, since, lambda one: one.wish == seq)
    assert named in str(rejected.reason.numbers["field"])


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (job("bad-zero", nodes=0), "spec.nodes"),
        (job("bad-less", nodes=-4), "spec.nodes"),
        (job("bad-gpus", nodes=None, gpus=-1), "spec.gpus"),
        (job("bad-field", colour="red"), "spec.colour"),
        (job("bad-type", nodes="four"), "spec.nodes"),
        (job("bad-true", nodes=True), "spec.nodes"),
        (job("bad.dot"), "job"),
        (job("*"), "job"),
        (job(">"), "job"),
        (job("x" * 10_000), "job"),
        (job(""), "job"),
        (b'{"job": "bad-half", "spec": ', "not JSON"),
        (b'{"job": "bad-\xff\xfe"}', "UTF-8"),
        (b"[]", "must be a JSON object"),
        (b"", "not JSON"),
    ],
    ids=lambda value: value[:24].decode(errors="replace") if isinstance(value, bytes) else value,
)
async def test_what_cannot_be_read_is_set_aside(
    live: Live, anybody: Anybody, data: bytes, named: str
) -> None:
    seq = await anybody.publish(data)
    assert named in await anybody.letter(seq, "wish")


async def test_a_wish_of_another_cell_or_of_no_kind(live: Live, anybody: Anybody) -> None:
    theirs = {"id": "w1", "type": "wish.cancel", "v": 1, "at": 0.0, "source": "me", "cell": "other"}
    data = json.dumps({**theirs, "body": {"job": "bad-theirs"}}).encode()
    seq = await anybody.publish(data, "rackwright.main.wish.ann.cancel")
    assert await anybody.letter(seq, "wish") == "cell: is 'other', this is 'main'"
    seq = await anybody.publish(b"{}", "rackwright.main.wish.ann.dance")
    assert "wish.dance" in await anybody.letter(seq, "wish")


async def test_what_is_too_large_is_refused_at_once(live: Live, anybody: Anybody) -> None:
    with pytest.raises(MaxPayloadError):
        await anybody.publish(job("bad-mega", run="x" * 1_000_000))
    with pytest.raises(APIError, match="exceeds maximum allowed"):
        await anybody.publish(job("bad-large", run="x" * 100_000))


async def test_one_id_and_two_specs(live: Live, anybody: Anybody) -> None:
    since = live.now()
    await live.start(live.spec("bad-twin", 1))
    seq = await anybody.publish(job("bad-twin", nodes=2))
    refused = await live.entry(WishRefused, since, lambda one: one.wish == seq)
    assert (refused.subject, refused.reason.code) == ("bad-twin", "id-taken")
    assert live.job("bad-twin").spec.nodes == 1


async def test_a_cancel_of_a_job_that_has_ended(live: Live, anybody: Anybody) -> None:
    await live.submit(live.spec("bad-late", 1, env={"LIVE_EXIT": "0"}))
    await live.ended("bad-late")
    answer = await live.wish(Cancel(job=JobId("bad-late")))
    assert isinstance(answer.entry, WishRefused)
    assert answer.entry.reason.code == "already-ended"
    assert live.fleet.tombstones[JobId("bad-late")].state is JobState.FINISHED


async def test_a_topology_with_a_node_in_two_racks(live: Live, anybody: Anybody) -> None:
    node = NodeId("r01-n01")
    answer = await live.wish(DefineRacks(racks=(RackSpec(rack=RackId("r99"), nodes=(node,)),)))
    assert isinstance(answer.entry, WishRefused)
    assert str(node) in str(answer.entry.reason.numbers["why"])
    assert RackId("r99") not in live.fleet.rack_numbers


async def test_a_status_that_speaks_of_an_older_worker(live: Live, anybody: Anybody) -> None:
    """The node that was swapped out tells that the old worker of the rank has ended well."""
    since = live.now()
    await live.start(live.spec("bad-old", 2))
    node, rack = live.nodes_of("bad-old")[1], live.rack_of("bad-old")
    await live.xid(node)
    await live.entry(SliceSwapped, since)
    await live.running("bad-old")
    old = WorkerStatus(worker="bad-old/1/1", state=WorkerState.EXITED, code=0)  # type: ignore[arg-type]
    true = live.board.nodes[node]
    forged = {**_plain(true), "n": true.n + 1, "workers": [_plain(old)]}
    await anybody.publish(_envelope("status.node", forged), AT.status(rack, node))
    await live.board.until(lambda board: board.worker("bad-old/1/1") is not None)
    live.tell("bad-old", "exit 0", 0)
    await live.entry(JobFinishing, since)
    live.tell("bad-old", "exit 0", 1)
    assert (await live.ended("bad-old")).state is JobState.FINISHED
    finishing = live.entries(JobFinishing, since)
    assert len(finishing) == 1
    assert len(live.starts("bad-old", 1)) == 2


async def test_nodes_that_nobody_knows_and_nodes_that_babble(live: Live, anybody: Anybody) -> None:
    nobody = {"node": "n0", "rack": "r00", "session": "s1", "n": 1}
    strange = _envelope(Heartbeat.TYPE, nobody)
    for data in (strange, b"", b"\xff", b"{}", b"x" * 100_000):
        await anybody.bus.publish(AT.heartbeat(RackId("r00"), NodeId("n0")), data)
        await anybody.bus.publish(AT.heartbeat(RackId("r01"), NodeId("r01-n01")), data)
    lying = _envelope(Heartbeat.TYPE, {**nobody, "session": SessionId("s9")})
    await anybody.bus.publish(AT.heartbeat(RackId("r01"), NodeId("r01-n01")), lying)
    seq = await anybody.publish(b"{}", AT.signal(RackId("r01"), NodeId("r01-n01")))
    assert "id: is missing" in await anybody.letter(seq, "signal")
    true = live.board.nodes[NodeId("r01-n01")]
    data = _envelope("status.node", {**_plain(true), "node": "r01-n03"})
    seq = await anybody.publish(data, AT.status(RackId("r03"), NodeId("r03-n06")))
    assert "body.rack" in await anybody.letter(seq, "status")
    await live.start(live.spec("bad-peace", 2))


def _plain(value: object) -> dict[str, Any]:
    from rackwright.wire.codec import to_json

    told: dict[str, Any] = json.loads(to_json(value))
    return told


def _envelope(kind: str, body: dict[str, Any]) -> bytes:
    head = {"id": "forged-1", "type": kind, "v": 1, "at": 0.0, "source": "me", "cell": "main"}
    return json.dumps({**head, "body": body}).encode()
