"""What agents ask each other by UDP when the bus is away: has yours gone too?

A datagram is a mark, an HMAC-SHA256 under the cell's shared key over all that follows, and one
message in JSON. What is too long, of another key or not exactly a message is nothing. An answer
repeats the nonce of its question, so an old one is worth nothing either.
"""

import hmac
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

from annotated_types import Len

from rackwright.wire.codec import Unreadable, read_json, to_json
from rackwright.wire.ids import CellRef, NodeRef
from rackwright.wire.message import Part

MOST_BYTES = 1024
ASKS, ANSWERS = b"rwq1", b"rwa1"
DIGEST = 32

Nonce = Annotated[str, Len(32, 32)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Part):
    """`node` asks its witness `to` whether that has the bus."""

    cell: CellRef
    node: NodeRef
    to: NodeRef
    nonce: Nonce


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Part):
    """The witness `node` tells `to`, which asked with this nonce: `away`, I have not either."""

    cell: CellRef
    node: NodeRef
    to: NodeRef
    nonce: Nonce
    away: bool


def key_of(secret: str, cell: str) -> bytes:
    """The key of a cell, from a secret that all its agents have."""
    return hmac.digest(secret.encode(), f"rackwright neighbours {cell}".encode(), sha256)


def seal(key: bytes, message: Question | Answer) -> bytes:
    """The datagram of a message."""
    mark = ASKS if isinstance(message, Question) else ANSWERS
    body = to_json(message)
    return mark + hmac.digest(key, mark + body, sha256) + body


def unseal(key: bytes, data: bytes) -> Question | Answer | None:
    """The message of a datagram, None for what is not one of this key."""
    mark, digest, body = data[:4], data[4 : 4 + DIGEST], data[4 + DIGEST :]
    if len(data) > MOST_BYTES or mark not in (ASKS, ANSWERS):
        return None
    if not hmac.compare_digest(digest, hmac.digest(key, mark + body, sha256)):
        return None
    try:
        if mark == ASKS:
            return read_json(Question, body, MOST_BYTES)
        return read_json(Answer, body, MOST_BYTES)
    except Unreadable:
        return None
