"""Requests over one inbox, with every way of not being answered told apart."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from rackwright.bus.cancelling import heeding_cancellation
from rackwright.bus.errors import BusDenied
from rackwright.bus.ports import Cause, Headers


class Unanswered(Exception):
    """No usable answer; `cause` says whether the request may have been heard."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail


@dataclass(slots=True)
class _Open:
    subject: str
    answer: asyncio.Future[Msg]


class Requests:
    """Matches answers to questions.

    nats-py's own `request` leaks when a publish raises, waits out its timeout after a disconnect,
    and never learns that the server denied the publish; this one does not.
    """

    def __init__(self, client: Client, *, patience: float) -> None:
        self._nc = client
        self._patience = patience
        self._prefix = ""
        self._count = 0
        self._open: dict[str, _Open] = {}

    async def start(self, inbox: str) -> None:
        """Listen for answers below `inbox`."""
        self._prefix = f"{inbox}."
        await self._nc.subscribe(
            f"{inbox}.*", cb=self._on_answer, pending_msgs_limit=0, pending_bytes_limit=0
        )

    async def _on_answer(self, message: Msg) -> None:
        waiting = self._open.get(message.subject)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(message)

    async def ask(
        self, subject: str, data: bytes, headers: Headers, patience: float | None = None
    ) -> Msg:
        """One question, one answer. Raises Unanswered, BusDenied."""
        self._count += 1
        inbox = f"{self._prefix}{self._count}"
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._open[inbox] = _Open(subject, answer)
        try:
            limit = self._patience if patience is None else patience
            async with asyncio.timeout(limit):
                with heeding_cancellation():  # that of the timeout, too
                    sent = dict(headers) if headers else None
                    await self._nc.publish(subject, data, inbox, sent)
            message = await _patiently(answer, limit)
        except TimeoutError:
            raise Unanswered(Cause.NO_ANSWER, "no answer in time") from None
        except NatsError as error:
            raise Unanswered(Cause.AWAY, str(error) or type(error).__name__) from error
        finally:
            del self._open[inbox]
        if not message.data and message.headers and message.headers.get("Status") == "503":
            raise Unanswered(Cause.NO_LEADER, f"nobody takes {subject}")
        return message

    def lost(self) -> None:
        """The connection is gone: no open question will be answered."""
        for waiting in self._open.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(Unanswered(Cause.NO_ANSWER, "connection lost"))

    def answered_on(self, subject: str) -> bool:
        """Is this, in lower case as nats-py reports it, where our answers come in?"""
        return subject == f"{self._prefix}*".lower()

    def denied(self, subject: str) -> None:
        """The server refused a publish; nats-py reports its subject in lower case."""
        for waiting in self._open.values():
            if waiting.subject.lower() == subject and not waiting.answer.done():
                waiting.answer.set_exception(BusDenied("publish", waiting.subject))


async def _patiently(answer: asyncio.Future[Msg], limit: float) -> Msg:
    """The answer. Raises TimeoutError when it has not come in `limit` seconds.

    In two halves: where this process itself was busy for longer, the answer has long been in its
    socket, and the second half finds it there.
    """
    for _ in range(2):
        if not answer.done():
            await asyncio.wait({answer}, timeout=limit / 2)
    if not answer.done():
        raise TimeoutError
    return answer.result()
