"""Publishing into one stream, and what each of the server's answers means."""

from __future__ import annotations

import json
import re
from typing import Final

from nats.aio.msg import Msg

from rackwright.bus.connection import Connection
from rackwright.bus.errors import BusAway, BusFull, BusRejected, MessageTooLarge
from rackwright.bus.match import check_below
from rackwright.bus.messages import size_of
from rackwright.bus.ports import NO_HEADERS, Appended, Cause, Headers, Outcome, Refused, Unsettled
from rackwright.bus.requests import Unanswered
from rackwright.bus.streams import StreamSpec

WRONG_LAST: Final = frozenset({10071, 10164})
STORE_FAILED: Final = 10077
RESOURCES: Final = frozenset({10002, 10023, 10028, 10047})
TOO_LARGE: Final = 10054
AWAY_CODES: Final = frozenset({10004, 10006, 10008, 10009})
LAST_IN_TEXT = re.compile(r"wrong last sequence: (\d+)")


class StreamWriter:
    """Publishes into the stream of `spec`."""

    def __init__(self, connection: Connection, spec: StreamSpec) -> None:
        self._connection = connection
        self.spec = spec

    def check(self, subject: str, data: bytes, headers: Headers) -> None:
        """Raises WrongSubject, MessageTooLarge."""
        check_below(self.spec.root, subject)
        size = size_of(data, headers)
        limit = min(self.spec.max_msg_size, self._connection.max_payload)
        if size > limit:
            raise MessageTooLarge(subject, size, limit)

    async def publish(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """Store without compare; the sequence. Raises BusAway, BusFull and those of `check`."""
        match await self.offer(subject, data, headers):
            case Appended(seq=seq):
                return seq
            case Unsettled(reason=reason, detail=detail):
                raise BusAway(f"publish {subject}", f"{reason}: {detail}")
            case Refused(last_seq=last):  # nothing was compared: somebody else's rule
                raise BusRejected(f"publish {subject}", 10071, f"wrong last sequence: {last}")

    async def offer(
        self, subject: str, data: bytes, headers: Headers, compare: Headers = NO_HEADERS
    ) -> Outcome:
        """Store, with a compare header if there is one. Raises BusFull and those of `check`."""
        sent = {**headers, **compare}
        self.check(subject, data, sent)
        try:
            answer = await self._connection.ask(subject, data, sent)
        except Unanswered as error:
            return Unsettled(reason=error.cause, detail=error.detail)
        return self._read(subject, len(data), answer)

    def _read(self, subject: str, size: int, answer: Msg) -> Outcome:
        said = json.loads(answer.data)
        error = said.get("error")
        if error is None:
            return Appended(seq=int(said["seq"]))
        code, text = int(error.get("err_code", 0)), str(error.get("description", ""))
        if code in WRONG_LAST:
            found = LAST_IN_TEXT.search(text)
            if found is None:
                return Unsettled(reason=Cause.UNAVAILABLE, detail=f"{text} ({code})")
            return Refused(last_seq=int(found[1]))
        if code in RESOURCES or (code == STORE_FAILED and "maximum" in text):
            raise BusFull(self.spec.name, text, code)
        if code == TOO_LARGE:
            raise MessageTooLarge(subject, size, self.spec.max_msg_size)
        if code in AWAY_CODES or code == STORE_FAILED:
            return Unsettled(reason=Cause.UNAVAILABLE, detail=f"{text} ({code})")
        raise BusRejected(f"publish {subject}", code, text)
