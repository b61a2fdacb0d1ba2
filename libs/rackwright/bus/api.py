"""The few JetStream API calls that are needed, with the server's error numbers kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rackwright.bus.connection import Connection
from rackwright.bus.errors import (
    BusAway,
    BusRejected,
    JetStreamDisabled,
    ServerTooOld,
    StreamDiffers,
    StreamMissing,
)
from rackwright.bus.ports import Cause
from rackwright.bus.requests import Unanswered
from rackwright.bus.streams import FIXED, Kind, StreamSpec

SERVER_AT_LEAST: Final = (2, 15)
STREAM_NOT_FOUND: Final = 10059
NAME_IN_USE: Final = 10058
ONE_SERVER: Final = 10074  # more than one replica is asked of a server that is alone
# 10005, too few peers: servers that have just started lead before they see each other.
UNAVAILABLE: Final = frozenset({10002, 10005, 10008, 10009, 10023})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """What STREAM.INFO says. `created` identifies the stream: another one has another value."""

    created: str
    first: int
    last: int
    messages: int
    bytes: int
    config: Mapping[str, Any]


class Api:
    """JetStream's request-reply API over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def call(self, subject: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        """One API request. Raises BusAway, BusRejected, StreamMissing, BusDenied."""
        data = b"" if body is None else json.dumps(body).encode()
        try:
            message = await self._connection.ask(f"$JS.API.{subject}", data)
        except Unanswered as error:
            raise BusAway(subject, str(error)) from error
        answer: dict[str, Any] = json.loads(message.data)
        if error_said := answer.get("error"):
            code = int(error_said.get("err_code", error_said.get("code", 0)))
            text = str(error_said.get("description", ""))
            if code == STREAM_NOT_FOUND:
                raise StreamMissing(subject.split(".", 3)[2])
            if code in UNAVAILABLE:
                raise BusAway(subject, f"{text} ({code})")
            if code == ONE_SERVER:
                text += ": where the bus is one server, give 1 replica"
            raise BusRejected(subject, code, text)
        return answer

    async def stream(self, name: str) -> StreamState:
        """Raises StreamMissing, BusAway."""
        return _state(await self.call(f"STREAM.INFO.{name}"))

    async def subjects(self, name: str, pattern: str) -> list[str]:
        """Subjects of a stream that match, sorted."""
        found: dict[str, int] = {}
        while True:
            body = {"subjects_filter": pattern, "offset": len(found)}
            answer = await self.call(f"STREAM.INFO.{name}", body)
            page = answer["state"].get("subjects") or {}
            found.update(page)
            if not page or len(found) >= int(answer.get("total", 0)):
                return sorted(found)

    async def purge(self, name: str, *, below: int | None = None, pattern: str = "") -> int:
        """Remove messages below a sequence, or those on matching subjects; how many."""
        body: dict[str, object] = {}
        if below is not None:
            body["seq"] = below
        if pattern:
            body["filter"] = pattern
        return int((await self.call(f"STREAM.PURGE.{name}", body))["purged"])

    async def check_account(self) -> None:
        """Raises JetStreamDisabled, BusAway."""
        try:
            await self.call("INFO")
        except BusRejected as error:
            raise JetStreamDisabled(error.description) from error
        except BusAway as error:
            why = error.__cause__
            if isinstance(why, Unanswered) and why.cause is Cause.NO_LEADER:
                raise JetStreamDisabled(error.reason) from error
            raise

    async def ensure(self, spec: StreamSpec) -> None:
        """Make the stream, or change what differs. Raises StreamDiffers."""
        wanted = spec.config()
        try:
            state = await self.stream(spec.name)
        except StreamMissing:
            await self.create(spec)
            return
        different = _differences(state.config, wanted)
        fixed = {name: pair for name, pair in different.items() if name in FIXED}
        if fixed:
            raise StreamDiffers(spec.name, fixed)
        if different:
            try:
                await self.call(f"STREAM.UPDATE.{spec.name}", wanted)
            except BusRejected as error:
                raise StreamDiffers(spec.name, different) from error

    async def create(self, spec: StreamSpec) -> None:
        """Make the stream; nothing happens if it is there just so. Raises StreamDiffers."""
        try:
            await self.call(f"STREAM.CREATE.{spec.name}", spec.config())
        except BusRejected as error:
            if error.code != NAME_IN_USE:
                raise
            state = await self.stream(spec.name)
            raise StreamDiffers(spec.name, _differences(state.config, spec.config())) from error


def _state(answer: Mapping[str, Any]) -> StreamState:
    state = answer["state"]
    last = int(state["last_seq"])
    return StreamState(
        created=str(answer["created"]),
        first=max(1, int(state["first_seq"])),
        last=last,
        messages=int(state["messages"]),
        bytes=int(state["bytes"]),
        config=answer["config"],
    )


def _differences(
    found: Mapping[str, Any], wanted: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    different = {}
    for name, want in wanted.items():
        have = found.get(name, [] if name in ("subjects", "sources") else None)
        if name == "sources" and isinstance(have, list):
            have = [{"name": source["name"]} for source in have]
        if have != want:
            different[name] = (have, want)
    for name in ("republish", "sources"):
        if found.get(name) and name not in wanted:
            different[name] = (found[name], None)
    return different


def check_server(connection: Connection) -> None:
    """Raises ServerTooOld, JetStreamDisabled."""
    found = connection.server_version
    match = re.match(r"(\d+)\.(\d+)", found)
    if match is None or (int(match[1]), int(match[2])) < SERVER_AT_LEAST:
        raise ServerTooOld(found, ".".join(map(str, SERVER_AT_LEAST)))
    if not connection.server_has_jetstream:
        raise JetStreamDisabled("the server says so")


async def ensure(connection: Connection, specs: Mapping[Kind, StreamSpec]) -> None:
    """Check the server and make every declared stream be as declared; safe to repeat.

    Raises ServerTooOld, JetStreamDisabled, StreamDiffers, BusAway, BusDenied.
    """
    api = Api(connection)
    check_server(connection)
    await api.check_account()
    for spec in specs.values():
        await api.ensure(spec)
