"""The gateway on a bus and over HTTP: answers, stories after a restart, events as they happen."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from rackwright.bus.errors import RequestFailed
from rackwright.bus.ports import Bus
from rackwright.gateway.desk import Desk
from rackwright.host.metrics import Metrics
from rackwright.host.standing import Standing
from rackwright.host.web import Web
from rackwright.wire.entries.job import JobCancelled
from rackwright.wire.ids import CellName, JobId, MessageId, Owner
from rackwright.wire.message import Commit
from rackwright.wire.reasons import Reason
from rackwright.wire.subjects import Subjects
from tests.integration.bus.harness import CELL, Harness
from tests.integration.gateway.conftest import gateway
from tests.integration.gateway.written import append, written
from tests.support.fleets import LEDGER

STORY = ["job.queued", "job.placed", "job.started"]


async def ask(bus: Bus, name: str, **parameters: Any) -> dict[str, Any]:
    subject = Subjects(CellName(CELL)).query(name)
    message = await bus.core.request(subject, json.dumps(parameters).encode(), patience=5.0)
    answer: dict[str, Any] = json.loads(message.data)
    return answer


async def folded(bus: Bus, seq: int) -> None:
    """Wait until the gateway has folded that much."""
    async with asyncio.timeout(20.0):
        while True:
            if (await ask(bus, "stats"))["seq"] >= seq:
                return
            await asyncio.sleep(0.01)


async def types(bus: Bus, job: str) -> list[str]:
    return [line["type"] for line in (await ask(bus, "job", job=job))["story"]]


async def test_a_story_begins_before_the_gateway_and_goes_on(harness: Harness) -> None:
    bus, other = await harness.bus(), await harness.bus()
    made = written()
    made.sit("a", "r0", [0, 1])
    await made.write(other)
    async with gateway(bus):
        assert await types(other, "a") == STORY
        made.add(JobCancelled(job=JobId("a"), by=Owner("ann"), reason=Reason(code="cancelled")))
        await made.write(other)
        await folded(other, made.fleet.seq)
        answer = await ask(other, "job", job="a")
        assert [line["type"] for line in answer["story"]] == [*STORY, "job.cancelled"]
        assert (answer["job"]["state"], answer["complete"], answer["since"]) == (
            "cancelled",
            True,
            1,
        )


async def test_a_story_survives_a_restart(harness: Harness) -> None:
    bus, again, other = [await harness.bus() for _ in range(3)]
    made = written()
    made.sit("a", "r0", [0, 1])
    await made.write(other)
    async with gateway(bus):
        before = await ask(other, "job", job="a")
    async with gateway(again):
        assert (await ask(other, "job", job="a"))["story"] == before["story"]


async def test_what_had_no_effect_is_told_before_and_after_a_restart(harness: Harness) -> None:
    bus, again, other = [await harness.bus() for _ in range(3)]
    made = written()
    await made.write(other)
    late = JobCancelled(job=JobId("b"), by=Owner("ann"), reason=Reason(code="cancelled"))
    commit: Commit[JobCancelled] = Commit(
        id=MessageId("late"),
        type=late.TYPE,
        v=1,
        at=0.0,
        source="placer/1",
        cell=CellName(CELL),
        ledger=LEDGER,
        prev=MessageId("somebody-else"),
        entries=(late,),
    )
    async with gateway(bus):
        await append(other, commit)
        await folded(other, made.fleet.seq + 1)
        (told,) = (await ask(other, "events", since=made.fleet.seq))["events"]
        assert (told["void"], told["type"]) == (True, "job.cancelled")
        assert told["text"].startswith("no effect: chain broken")
    async with gateway(again):
        assert (await ask(other, "events", since=made.fleet.seq))["events"] == [told]


@pytest.mark.parametrize(
    ("name", "parameters", "code", "text"),
    [
        ("job", {"job": "none"}, 404, "no job 'none' is known"),
        ("job", {"job": "a.b"}, 400, "job: "),
        ("jobs", {"limit": 0}, 400, "limit: "),
        ("node", {}, 400, "node: "),
    ],
)
async def test_errors_of_questions(
    harness: Harness, name: str, parameters: dict[str, Any], code: int, text: str
) -> None:
    bus, other = await harness.bus(), await harness.bus()
    await written().write(other)
    async with gateway(bus):
        with pytest.raises(RequestFailed, match=text) as error:
            await ask(other, name, **parameters)
        assert error.value.code == code


async def get(url: str) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, json.loads(await response.read())


async def test_the_same_over_http(harness: Harness) -> None:
    bus, other = await harness.bus(), await harness.bus()
    made = written()
    made.sit("a", "r0", [0, 1])
    await made.write(other)
    async with gateway(bus) as (_, url):
        status, answer = await get(f"{url}/api/v1/job/a?ranks=1")
        assert (status, answer["ranks_total"], len(answer["ranks"])) == (200, 2, 1)
        assert (await get(f"{url}/api/v1/racks/r0"))[1]["racks"][0]["rack"] == "r0"
        assert (await get(f"{url}/api/v1/node/r0-n01"))[1]["node"]["jobs"] == ["a"]
        assert (await get(f"{url}/api/v1"))[1]["questions"]["job"] == "/api/v1/job"
        assert await get(f"{url}/api/v1/job/none") == (
            404,
            {"status": 404, "error": "no job 'none' is known"},
        )
        assert await get(f"{url}/api/v1/jobs?limit=x") == (
            400,
            {"status": 400, "error": "limit: must be a whole number"},
        )
        assert (await get(f"{url}/api/v1/jobs?limit=1&limit=2"))[0] == 400
        assert (await get(f"{url}/api/v1/job/a?job=b"))[0] == 400
        assert (await get(f"{url}/api/v1/nope"))[0] == 404
        assert await get(f"{url}/nothing") == (404, {"status": 404, "error": "Not Found"})
        async with aiohttp.ClientSession() as web, web.post(f"{url}/api/v1/jobs") as refused:
            assert (refused.status, await refused.json()) == (
                405,
                {"status": 405, "error": "Method Not Allowed"},
            )
            assert "GET" in refused.headers["Allow"]


async def test_metrics_of_the_cell(harness: Harness) -> None:
    bus, other = await harness.bus(), await harness.bus()
    made = written()
    made.sit("a", "r0", [0, 1])
    await made.write(other)
    async with gateway(bus) as (_, url):
        async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
            page = await response.text()
        lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if line[:1] != "#")
        assert lines['rackwright_gpus{state="useful"}'] == "8.0"
        assert lines['rackwright_blocked_jobs{cause="topology.movable"}'] == "0.0"
        assert lines["rackwright_interactive_touched_total"] == "0.0"
        assert lines["rackwright_history_complete"] == "1.0"
        assert lines['rackwright_time_to_swap_seconds_bucket{le="+Inf"}'] == "0.0"
        assert lines['rackwright_spares_wanted{rack="r0"}'] == "1.0"


async def test_events_as_they_happen(harness: Harness) -> None:
    bus, other = await harness.bus(), await harness.bus()
    made = written()
    await made.write(other)
    async with gateway(bus) as (_, url), aiohttp.ClientSession() as session:
        stream = f"{url}/api/v1/events/stream?type=job.*"
        async with session.get(stream) as response:
            assert response.content_type == "text/event-stream"
            made.sit("a", "r0", [0])
            await made.write(other)
            found: list[dict[str, Any]] = []
            async with asyncio.timeout(20.0):
                while len(found) < 3:
                    line = (await response.content.readline()).decode()
                    if line.startswith("data: "):
                        found.append(json.loads(line.removeprefix("data: ")))
        assert [one["type"] for one in found] == STORY
        headers = {"Last-Event-ID": str(found[1]["seq"])}
        async with session.get(stream, headers=headers) as response:
            first = (await response.content.readline()).decode()
        assert first == f"id: {found[2]['seq']}\n"


async def test_before_it_is_open_a_desk_says_so() -> None:
    desk = Desk()
    standing = Standing(service="gateway", ordinal=0, cell=CELL)
    web = Web(standing, Metrics(), desk.routes())
    host, port = await web.start("127.0.0.1", 0)
    try:
        for page in ("jobs", "events/stream"):
            status, answer = await get(f"http://{host}:{port}/api/v1/{page}")
            assert (status, answer["error"]) == (503, "the gateway is starting")
    finally:
        await web.aclose()
