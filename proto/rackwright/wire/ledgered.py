"""What stands in a ledger: commits, and what the server put there for somebody who may not write.

Whoever may ask anything chooses where the answer goes. No permission of NATS covers the subject of
a reply, so every client can have the server's answer, or a service's, stored as a ledger message.
Such a message names no ledger and holds no entries. Nobody of ours wrote it: it is a commit for
no ledger, which every fold finds void, and not an entry of a newer version, which stops the fold.
"""

import hashlib

import orjson

from rackwright.wire.codec import Unreadable, decode_commit
from rackwright.wire.ids import CellName, LedgerId, MessageId
from rackwright.wire.message import Commit, Entry
from rackwright.wire.subjects import InvalidSubject, parse_entry

STRAY = "stray"
"""Type and source of a message that is no commit."""
NO_LEDGER = LedgerId("none-it-is-no-commit")


def read_commit(cell: CellName, subject: str, data: bytes) -> Commit[Entry]:
    """The commit stored under a ledger subject; a stray message is one without entries.

    Raises Unreadable, UnknownType, InvalidSubject for what may be a commit and cannot be read.
    """
    try:
        return decode_commit(parse_entry(cell, subject), data)
    except (Unreadable, InvalidSubject):
        if not is_stray(data):
            raise
    return _stray(cell, subject, data)


def is_stray(data: bytes) -> bool:
    """Did nobody of ours write this? Whole JSON, or nothing, without what every commit has."""
    if not data:
        return True
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False  # perhaps a commit that was damaged: to skip it in one copy would be wrong
    return not (isinstance(parsed, dict) and ("ledger" in parsed or "entries" in parsed))


def _stray(cell: CellName, subject: str, data: bytes) -> Commit[Entry]:
    mark = hashlib.blake2s(subject.encode() + b"\0" + data, digest_size=12).hexdigest()
    return Commit(
        id=MessageId(f"{STRAY}-{mark}"),
        type=STRAY,
        v=1,
        at=0.0,
        source=STRAY,
        cell=cell,
        ledger=NO_LEDGER,
        entries=(),
    )
