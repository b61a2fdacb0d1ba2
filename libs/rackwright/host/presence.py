"""Says that this copy is there, as every NATS tool can ask (`$SRV`, ADR-32), and counts the others.

Copies that could not pass a ledger entry, or have not caught up, answer but do not count.
"""

from __future__ import annotations

import asyncio
import datetime
import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, ClassVar

import structlog

from rackwright.bus.opening import patiently
from rackwright.bus.ports import Bus, Handler, Message
from rackwright.host.clock import Clock
from rackwright.host.standing import Standing
from rackwright.wire.codec import Unreadable, read_json, to_json
from rackwright.wire.message import LENIENT

ASK_S = 1.0
FIRST_S = 0.3
LATE_S = 0.05
GONE_S = 3.5
MAX_ANSWER = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is read of a PING answer; NATS's own fields beside it are ignored."""

    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT

    id: str
    metadata: dict[str, str]
    name: str = ""
    version: str = ""

    @property
    def copy(self) -> int:
        """Its number."""
        return int(self.metadata["copy"])

    @property
    def ready(self) -> bool:
        """May it decide?"""
        return self.metadata.get("ready") == "true"


def answered(cell: str, data: bytes) -> Answer | None:
    """An answer of a copy of this cell; None: it is none."""
    try:
        answer = read_json(Answer, data, MAX_ANSWER)
    except Unreadable:
        return None
    metadata = answer.metadata
    ours = metadata.get("cell") == cell and metadata.get("copy", "").isdigit()
    return answer if ours else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Another copy, when (`mono`) it last answered and whether it may decide."""

    ordinal: int
    mono: float
    ready: bool


def place_among(mine: int, others: list[int]) -> tuple[int, int]:
    """How many copies are present and which of them copy `mine` is, counted from 0."""
    present = sorted({mine, *others})
    return len(present), present.index(mine)


class Presence:
    """One process of a service on `$SRV`. `inbox` is a subject that only it may hear."""

    def __init__(
        self,
        bus: Bus,
        standing: Standing,
        *,
        inbox: str,
        tell: Callable[[int, int], None],
        mono: Clock,
        counts: Callable[[], dict[str, float]] = dict,
    ) -> None:
        self._core = bus.core
        self._standing = standing
        self._tell = tell
        self._mono = mono
        self._counts = counts
        self._log = structlog.get_logger()
        self._name = f"rackwright-{standing.service}"
        token = secrets.token_hex(4)
        self._id = f"{standing.cell}-{standing.service}-{standing.ordinal}-{token}"
        self._inbox = f"{inbox}.{token}"
        self._started = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
        self._version = version("rackwright")  # asks the disk
        self._others: dict[str, Copy] = {}

    async def run(self) -> None:
        """Answer and ask until cancelled."""
        async with AsyncExitStack() as closing:
            answers = await patiently(partial(self._core.subscribe, self._inbox))
            closing.push_async_callback(answers.aclose)
            async with asyncio.TaskGroup() as tasks:
                # It asks first: nothing is decided before the others have had time to answer.
                tasks.create_task(self._ask())
                tasks.create_task(self._open(closing))
                while messages := await answers.batch():
                    for message in messages:
                        self._note(message)

    async def _open(self, closing: AsyncExitStack) -> None:
        """Answer from now on."""
        for subject, say in self._endpoints().items():
            responder = await patiently(partial(self._core.respond, subject, say))
            closing.push_async_callback(responder.aclose)

    # Answering

    def _endpoints(self) -> dict[str, Handler]:
        found: dict[str, Handler] = {}
        for verb, say in (("PING", self._ping), ("INFO", self._info), ("STATS", self._stats)):
            for who in ("", f".{self._name}", f".{self._name}.{self._id}"):
                found[f"$SRV.{verb}{who}"] = say
        return found

    def _identity(self, kind: str) -> dict[str, object]:
        standing = self._standing
        return {
            "type": f"io.nats.micro.v1.{kind}_response",
            "name": self._name,
            "id": self._id,
            "version": self._version,
            "metadata": {
                "cell": standing.cell,
                "copy": str(standing.ordinal),
                "ready": str(standing.serving).lower(),
                "revision": str(standing.revision),
                "stopped_at": "" if standing.stopped_at is None else str(standing.stopped_at),
                "why": standing.reason,
            },
        }

    async def _ping(self, _: Message) -> bytes:
        return to_json(self._identity("ping"))

    async def _info(self, _: Message) -> bytes:
        about = f"The {self._standing.service} of Rackwright"
        return to_json({**self._identity("info"), "description": about, "endpoints": []})

    async def _stats(self, _: Message) -> bytes:
        more = {"started": self._started, "endpoints": [], "data": self._counts()}
        return to_json({**self._identity("stats"), **more})

    # Asking

    async def _ask(self) -> None:
        first = True
        while True:
            asked = await self._core.publish(f"$SRV.PING.{self._name}", b"", reply=self._inbox)
            answered_by = self._mono() + FIRST_S
            await asyncio.sleep(FIRST_S if first else ASK_S)
            if first and self._mono() > answered_by + LATE_S:
                # A snapshot was loaded meanwhile: answers may have come that are not yet read.
                await asyncio.sleep(LATE_S)
            if asked or not first:
                first = False
                self._count()

    def _note(self, message: Message) -> None:
        answer = answered(self._standing.cell, message.data)
        if answer is None or answer.id == self._id:
            return
        ordinal = answer.copy
        if ordinal == self._standing.ordinal and answer.id not in self._others:
            self._log.error("copy.ordinal_taken", ordinal=ordinal, by=answer.id)
        self._others[answer.id] = Copy(ordinal=ordinal, mono=self._mono(), ready=answer.ready)

    def _count(self) -> None:
        since = self._mono() - GONE_S
        self._others = {name: one for name, one in self._others.items() if one.mono >= since}
        ready = [one.ordinal for one in self._others.values() if one.ready]
        copies = place_among(self._standing.ordinal, ready)
        if copies != self._standing.copies:
            self._tell(*copies)
