"""Headers that mean something to the server, and how large a message is to it."""

from __future__ import annotations

from typing import Final

from rackwright.bus.values import Headers

EXPECT: Final = "Nats-Expected-Last-Sequence"
EXPECT_ON_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence"
OPERATION: Final = "KV-Operation"  # on a bucket's message: the key was deleted
HEADER_FRAME: Final = 14  # "NATS/1.0", its line end, and the empty line after the headers


def size_of(data: bytes, headers: Headers) -> int:
    """Bytes of a message as the server counts them: with its encoded headers."""
    if not headers:
        return len(data)
    lines = sum(len(k.encode()) + len(v.encode()) + 4 for k, v in headers.items())
    return HEADER_FRAME + lines + len(data)
