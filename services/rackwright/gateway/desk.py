"""Gives answers out: over NATS by request and reply, over HTTP, and as a stream of events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from aiohttp import web

from rackwright.bus.errors import RequestFailed
from rackwright.bus.opening import patiently
from rackwright.bus.ports import Bus, Message
from rackwright.gateway import asked
from rackwright.gateway.answers import answer
from rackwright.gateway.answers.events import events
from rackwright.gateway.asked import QUESTIONS, BadQuestion, from_json, from_texts
from rackwright.gateway.context import Context
from rackwright.gateway.history import History
from rackwright.gateway.machine import State
from rackwright.gateway.page import MAX_ANSWER
from rackwright.gateway.roster import Roster
from rackwright.gateway.views import Problem
from rackwright.host.runner import Runner
from rackwright.wire.codec import to_json
from rackwright.wire.ids import CellName
from rackwright.wire.message import Part
from rackwright.wire.subjects import Subjects

QUEUE = "gateway"
STREAMS = 64  # listeners at once
KEEP_ALIVE_S = 15.0


class Desk:
    """Answers once it is open; before that every question gets a 503."""

    def __init__(self) -> None:
        self.roster: Roster | None = None
        self._runner: Runner[State] | None = None
        self._history: History | None = None
        self._streams = 0

    async def serve(self, bus: Bus, runner: Runner[State]) -> None:
        """Open the desk, answer on the bus and read the past back, until cancelled.

        All copies of the gateway share the questions.
        """
        history = History(bus)
        self._runner, self._history = runner, history
        runner.on_folded(history.heard)
        subjects = Subjects(CellName(bus.cell))
        responders = [
            await patiently(
                partial(
                    bus.core.respond,
                    subjects.query(name),
                    partial(self._reply, name),
                    queue=QUEUE,
                )
            )
            for name in QUESTIONS
        ]
        try:
            await runner.standing.readied.wait()
            history.begin(runner.standing.fleet)
            await history.read_back()
        finally:
            self._runner = self._history = None
            history.tell()  # so that streams end
            for responder in responders:
                await responder.aclose()

    @property
    def complete(self) -> bool:
        """Is it open, and has the past been read back?"""
        return self._history is not None and self._history.complete

    # Answers

    def context(self) -> Context:
        """What answers are made from now. Raises BadQuestion while the ledger is being read."""
        if self._runner is None or self._history is None:
            raise BadQuestion(503, "the gateway is starting")
        runner = self._runner
        standing = runner.standing
        if not standing.readied.is_set() and standing.stopped_at is None:
            raise BadQuestion(503, f"the gateway is {standing.why or 'starting'}")
        stopped = None if standing.stopped_at is None else (standing.stopped_at, standing.why)
        return Context(
            cell=standing.cell,
            fleet=standing.fleet,
            state=runner.state or State(),
            past=self._history,
            now=max(standing.fleet.time, time.time()),
            stopped=stopped,
            away=not standing.connected,
            present=() if self.roster is None else self.roster.present(),
        )

    def ask(self, name: str, question: Part) -> bytes:
        """One answer in JSON. Raises BadQuestion."""
        made = to_json(answer(name, self.context(), question))
        if len(made) > MAX_ANSWER:
            raise BadQuestion(
                413,
                f"the answer has {len(made)} bytes, at most {MAX_ANSWER} are sent: ask for less",
            )
        return made

    async def _reply(self, name: str, message: Message) -> bytes:
        try:
            return self.ask(name, from_json(name, message.data))
        except BadQuestion as error:
            raise RequestFailed(name, error.status, error.text) from error

    # HTTP

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """What the process's web server serves besides."""
        return [
            web.get("/api/v1", self._index),
            web.get("/api/v1/events/stream", self._stream),
            web.get("/api/v1/{name}", self._page),
            web.get("/api/v1/{name}/{id}", self._page),
        ]

    async def _index(self, _: web.Request) -> web.Response:
        made = {"questions": {name: f"/api/v1/{name}" for name in QUESTIONS}}
        return web.Response(body=to_json(made), content_type="application/json")

    async def _page(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        try:
            texts = _parameters(request, name)
            made = self.ask(name, from_texts(name, texts))
        except BadQuestion as error:
            return _problem(error)
        return web.Response(body=made, content_type="application/json")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: each entry as it is folded, its sequence as the id."""
        try:
            texts = _parameters(request, "events")
            since = request.headers.get("Last-Event-ID")
            if since is not None:
                texts["since"] = since
            question = from_texts("events", texts)
            assert isinstance(question, asked.Events)
            if self._streams >= STREAMS:
                raise BadQuestion(503, f"{STREAMS} listeners are served already")
            context = self.context()
        except BadQuestion as error:
            return _problem(error)
        if question.since is None:
            question = replace(question, since=context.fleet.seq)
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        self._streams += 1
        try:
            await response.prepare(request)
            await self._send_all(response, question)
        except ConnectionError:
            pass  # the listener has gone
        finally:
            self._streams -= 1
        return response

    async def _send_all(self, response: web.StreamResponse, question: asked.Events) -> None:
        while (history := self._history) is not None:
            try:
                found = events(self.context(), question)
            except BadQuestion as error:
                if error.status != 503:
                    raise
                await history.changed()
                continue
            for line in found.events:
                data = to_json(line).decode()
                await response.write(f"id: {line.seq}\ndata: {data}\n\n".encode())
            question = replace(question, since=found.next)
            if found.next < found.seq:
                continue
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await history.changed()
            except TimeoutError:
                await response.write(b": nothing new\n\n")


def _parameters(request: web.Request, name: str) -> dict[str, str]:
    """The query string, and the id in the path. Raises BadQuestion."""
    texts: dict[str, str] = {}
    for key, value in request.query.items():
        if key in texts:
            raise BadQuestion(400, f"{key[:60]}: is given twice")
        texts[key] = value
    one = request.match_info.get("id")
    if one is not None:
        key = {"racks": "rack", "defrag": "job"}.get(name, name)
        if texts.setdefault(key, one) != one:
            raise BadQuestion(400, f"{key}: is {one[:60]!r} in the path and another one behind it")
    return texts


def _problem(error: BadQuestion) -> web.Response:
    body = to_json(Problem(status=error.status, error=error.text))
    return web.Response(status=error.status, body=body, content_type="application/json")
