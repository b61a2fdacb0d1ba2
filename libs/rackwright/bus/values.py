"""What passes through the ports: messages, outcomes and positions as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from rackwright.wire.quick import quick

Headers: TypeAlias = Mapping[str, str]
NO_HEADERS: Headers = MappingProxyType({})


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A message as its stream holds it. `at` is the server's timestamp, equal in all replicas.

    The bus may add headers that begin with `Nats-` to the publisher's.
    """

    seq: int
    subject: str
    at: float
    headers: Headers
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """First and last sequence of a stream. Empty: `first == last + 1`."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How full a stream is, in bytes. `fraction` is compared with the alarm limits."""

    messages: int
    bytes: int
    max_bytes: int

    @property
    def fraction(self) -> float:
        """0 empty, 1 full."""
        return self.bytes / self.max_bytes


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """Stored as `seq` (for a projection: the key's new revision)."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Not stored by this attempt: the compare failed. `last_seq` is what the compare found.

    It does not follow that the message is absent: an earlier, unsettled attempt may be in.
    """

    last_seq: int


class Cause(StrEnum):
    """Why an append is unsettled."""

    AWAY = "away"  # no connection: it was not sent
    NO_LEADER = "no_leader"  # nobody took it just now
    NO_ANSWER = "no_answer"  # sent, and no answer in time: it may still come in, later too
    UNAVAILABLE = "unavailable"  # the server answered that it could not just now


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Nobody knows yet. Only the stream (the fold) says whether the message is in."""

    reason: Cause
    detail: str


Outcome: TypeAlias = Appended | Refused | Unsettled


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """All that was there when the feed (re)started has been delivered. `last`: sequence then."""

    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One key of a projection with its revision."""

    key: str
    revision: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A key as it is now; `data is None`: it was deleted."""

    key: str
    revision: int
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A core NATS message. `reply` is where an answer goes, if one is wanted."""

    subject: str
    reply: str | None
    headers: Headers
    data: bytes
