"""One trace follows a job from the wish of its owner to its end, through every service."""

from __future__ import annotations

import json
from typing import Any

import nats
import pytest

from rackwright.wire.codec import to_json
from rackwright.wire.ids import JobId
from rackwright.wire.wishes import Submit
from tests.support.live import Live
from tests.support.world import appears

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


def spans(live: Live) -> list[dict[str, Any]]:
    """All spans of the trace that every service has written so far."""
    return [
        {**json.loads(line), "by": file.stem}
        for file in sorted((live.stack.options.state_dir / "traces").iterdir())
        for line in file.read_text(encoding="utf-8").splitlines()
        if TRACE in line
    ]


def steps(live: Live) -> set[tuple[str, str]]:
    """Who did what in the trace."""
    return {(span["by"], span["name"]) for span in spans(live)}


async def test_one_trace_from_the_wish_to_the_end(live: Live) -> None:
    spec = live.spec("traced", 2, env={"LIVE_EXIT": "0"})
    wish = to_json(Submit(job=JobId("traced"), spec=spec))
    password = live.stack.credentials.password("ann")
    bus = await nats.connect(live.stack.server.url, user="ann", password=password)
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    await bus.jetstream().publish("rackwright.main.wish.ann.submit", wish, headers=headers)
    await bus.close()
    await live.ended("traced")

    said = [f"send rackwright.main.ledger.job.{verb}" for verb in ("queued", "placed", "finished")]
    wanted = {("placer-0", name) for name in ("process wishes", *said)}
    await appears(lambda: wanted <= steps(live))
    mine = [span for span in spans(live) if span["by"] == "placer-0"]
    parents = {span["context"]["span_id"]: span["parent_id"] for span in mine}
    last = next(span for span in mine if span["name"] == said[-1])["context"]["span_id"]
    way = [last]
    while way[-1] in parents:
        way.append(parents[way[-1]])
    assert way[-1] == f"0x{SPAN}"
    assert len(way) >= len(wanted) + 1
