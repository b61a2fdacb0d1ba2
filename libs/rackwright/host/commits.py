"""Builds commits: ids that no other process makes, the chain to the commit before, the size."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Offer
from rackwright.wire.codec import (
    MAX_MESSAGE,
    Unreadable,
    encode,
    encode_value,
    seal,
    write_commit,
)
from rackwright.wire.ids import CellName, MessageId, check_name
from rackwright.wire.message import Body, Commit, Entry, Envelope
from rackwright.wire.quick import quick
from rackwright.wire.subjects import Subjects

HEADER_ROOM = 1024
MAX_DATA = MAX_MESSAGE - HEADER_ROOM


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A commit with its bytes and subject. `rest`: what of the `offer` had no room in it."""

    commit: Commit[Entry]
    data: bytes
    subject: str
    expected: int | None
    offer: Offer
    rest: Offer | None = None


class Author:
    """One process as the writer of messages: `<service>/<ordinal>`, with ids of its own."""

    def __init__(
        self, cell: CellName, service: str, ordinal: int, token: str | None = None
    ) -> None:
        self.cell = cell
        self.service = check_name("service", service)
        self.ordinal = ordinal
        self.source = f"{service}/{ordinal}"
        self._subjects = Subjects(cell)
        self._prefix = f"{service}.{ordinal}.{token or secrets.token_hex(5)}"
        self._count: Iterator[int] = itertools.count(1)

    def message_id(self) -> MessageId:
        """A new id, different from every one of this and of any other process."""
        return MessageId(f"{self._prefix}.{next(self._count)}")

    def said(self, body: Body, at: float) -> bytes:
        """The bytes of a fact of this author, with an id of its own."""
        return encode(self._envelope(body, at))

    def value(self, body: Body, at: float) -> bytes:
        """The bytes of a value that agents read, who may be older than this."""
        return encode_value(self._envelope(body, at))

    def _envelope(self, body: Body, at: float) -> Envelope[Body]:
        return Envelope(
            id=self.message_id(),
            type=body.TYPE,
            v=body.VERSION,
            at=at,
            source=self.source,
            cell=self.cell,
            body=body,
        )

    def commit(self, fleet: Fleet, offer: Offer, at: float) -> Commit[Entry]:
        """The commit of an offer, chained to the end of the fold; `at` is for people only."""
        kind = type(offer.entries[0])
        return Commit(
            id=self.message_id(),
            type=kind.TYPE,
            v=kind.VERSION,
            at=at,
            source=self.source,
            cell=self.cell,
            ledger=fleet.ledger,
            prev=fleet.last_id if offer.compare else None,
            wishes_to=offer.wishes_to,
            entries=offer.entries,
        )

    def seal(self, fleet: Fleet, offer: Offer, at: float) -> Sealed:
        """The commit with its bytes; entries that make it too large are left for the next one.

        Raises Unreadable for what nobody could read again, a single entry too large included.
        """
        head, rest = offer, None
        while True:
            commit = self.commit(fleet, head, at)
            written = write_commit(commit)
            size = len(written)
            if size <= MAX_DATA or len(head.entries) == 1:
                break
            fit = max(1, len(head.entries) * MAX_DATA // size)
            # The promise about wishes holds only when the last piece is in.
            head = replace(head, entries=head.entries[:fit], wishes_to=None)
            rest = replace(offer, entries=offer.entries[fit:])
        if size > MAX_DATA:
            raise Unreadable("entries", f"{size} bytes, at most {MAX_DATA} may be written")
        return Sealed(
            commit=commit,
            data=seal(commit, written),
            subject=self._subjects.entry(commit.type),
            expected=fleet.seq if head.compare else None,
            offer=offer,
            rest=rest,
        )
