"""Every stream and bucket of a cell, declared in one place, with limits on everything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
HOUR_S = 3600.0
CELL = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")
MARKER_TTL_S = 3600  # how long a deleted key of a bucket still says that it was deleted


class Kind(StrEnum):
    """The streams of a cell by what may be lost."""

    LEDGER = "ledger"
    WISH = "wish"
    INTAKE = "intake"
    SIGNAL = "signal"
    STATUS = "status"
    ASSIGN = "assign"
    JOBS = "jobs"
    SNAP = "snap"
    DEAD = "dead"


class Storage(StrEnum):
    """Where a stream lives. A single server forgets memory streams when it restarts."""

    FILE = "file"
    MEMORY = "memory"


class Discard(StrEnum):
    """What a full stream does: drop the oldest, or refuse the newest."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes, ages in seconds. The defaults suit a machine of one developer.

    `ledger_alarm` and `ledger_refuse` are fractions of `ledger_bytes`: above the first somebody is
    told, above the second job submissions are refused so that swaps never are.
    """

    ledger_bytes: int = 2 * GIB
    ledger_alarm: float = 0.5
    ledger_refuse: float = 0.8
    ledger_message: int = 128 * KIB
    wish_bytes: int = 256 * MIB
    wish_message: int = 64 * KIB
    intake_age_s: float = 24 * HOUR_S
    signal_bytes: int = 64 * MIB
    signal_per_node: int = 64
    signal_age_s: float = HOUR_S
    signal_message: int = 16 * KIB
    signal_storage: Storage = Storage.MEMORY
    status_bytes: int = 64 * MIB
    status_message: int = 64 * KIB
    status_storage: Storage = Storage.MEMORY
    assign_bytes: int = 64 * MIB
    jobs_bytes: int = 128 * MIB
    projection_message: int = 128 * KIB
    projection_storage: Storage = Storage.MEMORY
    snap_bytes: int = 512 * MIB
    snap_message: int = 160 * KIB
    dead_bytes: int = 64 * MIB
    dead_message: int = 200 * KIB
    dead_age_s: float = 7 * 24 * HOUR_S


PRODUCTION = Limits(
    ledger_bytes=64 * GIB,
    wish_bytes=4 * GIB,
    signal_bytes=2 * GIB,
    status_bytes=GIB,
    assign_bytes=512 * MIB,
    jobs_bytes=2 * GIB,
    snap_bytes=4 * GIB,
    dead_bytes=GIB,
)
"""For a cell of up to 25,000 nodes on three servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """One stream as it must be. `root` is the subject prefix of its messages, with the dot.

    `told` repeats each stored message on `<told>...` to whoever listens there: unlike the
    subject it was published on, this is heard only for what was accepted.
    """

    kind: Kind
    name: str
    root: str
    storage: Storage
    discard: Discard
    max_bytes: int
    max_msg_size: int
    max_age_s: float = 0.0
    max_per_subject: int = -1
    replicas: int = 1
    deny_delete: bool = False
    direct: bool = False
    bucket: bool = False
    told: str = ""
    source: str = ""

    def config(self) -> dict[str, object]:
        """The JetStream configuration that says this."""
        config: dict[str, object] = {
            "name": self.name,
            "subjects": [] if self.source else [f"{self.root}>"],
            "retention": "limits",
            "storage": str(self.storage),
            "discard": str(self.discard),
            "max_bytes": self.max_bytes,
            "max_msg_size": self.max_msg_size,
            "max_age": int(self.max_age_s * 1e9),
            "max_msgs_per_subject": self.max_per_subject,
            "num_replicas": self.replicas,
            "deny_delete": self.deny_delete,
            "allow_direct": self.direct,
            "allow_rollup_hdrs": self.bucket,
            "allow_msg_ttl": self.bucket,
        }
        if self.told:
            config["republish"] = {"src": f"{self.root}>", "dest": f"{self.told}>"}
        if self.source:
            config["sources"] = [{"name": self.source}]
        return config


# What a running stream may not change; all else `ensure` updates.
FIXED = frozenset({"name", "retention", "storage", "deny_delete"})


def stream_name(cell: str, kind: Kind) -> str:
    """The stream of a kind; buckets carry the prefix that `nats kv` expects."""
    bucket = kind in (Kind.ASSIGN, Kind.JOBS)
    return f"KV_{bucket_name(cell, kind)}" if bucket else f"rackwright_{cell}_{kind}"


def bucket_name(cell: str, kind: Kind) -> str:
    """The name to use with `nats kv watch`."""
    return f"rackwright_{cell}_{kind}"


def subject_root(cell: str, kind: Kind) -> str:
    """The prefix of all subjects a stream holds."""
    if kind in (Kind.ASSIGN, Kind.JOBS):
        return f"$KV.{bucket_name(cell, kind)}."
    return f"rackwright.{cell}.{Kind.WISH if kind is Kind.INTAKE else kind}."


def declare(
    cell: str, *, replicas: int = 1, limits: Limits | None = None
) -> Mapping[Kind, StreamSpec]:
    """All streams of a cell, in the order to make them.

    Users and agents publish only into streams of one replica: on a replicated stream one header
    from any client can stop it for ever. With several replicas wishes therefore arrive in INTAKE,
    and WISH copies from there.
    """
    if not CELL.fullmatch(cell):
        raise ValueError(f"cell {cell!r} is not lower-case letters, digits and inner dashes")
    if replicas < 1 or replicas > 5 or replicas % 2 == 0:
        raise ValueError(f"{replicas} replicas: 1, 3 or 5 are possible")
    at = limits or Limits()
    specs = [
        _ledger(cell, replicas, at),
        *_wishes(cell, replicas, at),
        *_reports(cell, at),
        _bucket(cell, Kind.ASSIGN, at.assign_bytes, replicas, at),
        _bucket(cell, Kind.JOBS, at.jobs_bytes, replicas, at),
        *_kept(cell, replicas, at),
    ]
    return MappingProxyType({spec.kind: spec for spec in specs})


def _ledger(cell: str, replicas: int, at: Limits) -> StreamSpec:
    return StreamSpec(
        kind=Kind.LEDGER,
        name=stream_name(cell, Kind.LEDGER),
        root=subject_root(cell, Kind.LEDGER),
        storage=Storage.FILE,
        discard=Discard.NEW,
        max_bytes=at.ledger_bytes,
        max_msg_size=at.ledger_message,
        replicas=replicas,
        deny_delete=True,
        told=f"rackwright.{cell}.told.",
    )


def _wishes(cell: str, replicas: int, at: Limits) -> list[StreamSpec]:
    def spec(kind: Kind, copies: int, source: str = "") -> StreamSpec:
        return StreamSpec(
            kind=kind,
            name=stream_name(cell, kind),
            root=subject_root(cell, kind),
            storage=Storage.FILE,
            discard=Discard.NEW,
            max_bytes=at.wish_bytes,
            max_msg_size=at.wish_message,
            # The intake's wishes are copied within milliseconds; nobody trims it.
            max_age_s=at.intake_age_s if kind is Kind.INTAKE else 0.0,
            replicas=copies,
            source=source,
        )

    if replicas == 1:
        return [spec(Kind.WISH, 1)]
    return [spec(Kind.INTAKE, 1), spec(Kind.WISH, replicas, stream_name(cell, Kind.INTAKE))]


def _reports(cell: str, at: Limits) -> list[StreamSpec]:
    return [
        StreamSpec(
            kind=Kind.SIGNAL,
            name=stream_name(cell, Kind.SIGNAL),
            root=subject_root(cell, Kind.SIGNAL),
            storage=at.signal_storage,
            discard=Discard.OLD,
            max_bytes=at.signal_bytes,
            max_msg_size=at.signal_message,
            max_age_s=at.signal_age_s,
            max_per_subject=at.signal_per_node,
        ),
        StreamSpec(
            kind=Kind.STATUS,
            name=stream_name(cell, Kind.STATUS),
            root=subject_root(cell, Kind.STATUS),
            storage=at.status_storage,
            discard=Discard.OLD,
            max_bytes=at.status_bytes,
            max_msg_size=at.status_message,
            max_per_subject=1,
        ),
    ]


def _bucket(cell: str, kind: Kind, size: int, replicas: int, at: Limits) -> StreamSpec:
    return StreamSpec(
        kind=kind,
        name=stream_name(cell, kind),
        root=subject_root(cell, kind),
        storage=at.projection_storage,
        discard=Discard.NEW,
        max_bytes=size,
        max_msg_size=at.projection_message,
        max_per_subject=1,
        replicas=replicas,
        deny_delete=True,
        direct=True,
        bucket=True,
        told=f"rackwright.{cell}.{kind}.",
    )


def _kept(cell: str, replicas: int, at: Limits) -> list[StreamSpec]:
    return [
        StreamSpec(
            kind=Kind.SNAP,
            name=stream_name(cell, Kind.SNAP),
            root=subject_root(cell, Kind.SNAP),
            storage=Storage.FILE,
            discard=Discard.NEW,
            max_bytes=at.snap_bytes,
            max_msg_size=at.snap_message,
            max_per_subject=1,
            replicas=replicas,
            direct=True,
        ),
        StreamSpec(
            kind=Kind.DEAD,
            name=stream_name(cell, Kind.DEAD),
            root=subject_root(cell, Kind.DEAD),
            storage=Storage.FILE,
            discard=Discard.OLD,
            max_bytes=at.dead_bytes,
            max_msg_size=at.dead_message,
            max_age_s=at.dead_age_s,
            replicas=1,
        ),
    ]
