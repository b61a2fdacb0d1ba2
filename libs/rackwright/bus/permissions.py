"""Who may say and hear what on the bus: the least that each role needs, as a table.

A role is given as data; `Permissions` are the subjects, `User` what the server's configuration
gets. Nobody but the administrator may make, change or delete a stream, with one exception: owners
of memory streams may create them, because a single server forgets them when it restarts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rackwright.bus.streams import Kind, stream_name, subject_root
from rackwright.wire.catalog import SAYS, Party
from rackwright.wire.wishes import JOB_WISHES


class Role(StrEnum):
    """The services, each with a NATS user of its own."""

    PLACER = "placer"
    HEALTH_MONITOR = "health-monitor"
    SPARE_MANAGER = "spare-manager"
    DEFRAGMENTER = "defragmenter"
    DISPATCHER = "dispatcher"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What a service needs. `entries`, `hears` and `says` are below the cell's root; `asks`: whose
    copies it counts beside its own."""

    entries: tuple[str, ...] = ()
    reads: tuple[Kind, ...] = ()
    writes: tuple[Kind, ...] = ()
    purges: tuple[Kind, ...] = ()
    makes: tuple[Kind, ...] = ()
    hears: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    asks: tuple[Role, ...] = ()


EVERY_SERVICE: Final = Rights(
    reads=(Kind.LEDGER, Kind.SNAP),
    writes=(Kind.DEAD,),
    hears=("query.>",),
)

SERVICES: Final[Mapping[Role, Rights]] = MappingProxyType(
    {
        Role.PLACER: Rights(
            entries=SAYS[Party.PLACER],
            reads=(Kind.WISH, Kind.STATUS),
            purges=(Kind.WISH,),
        ),
        Role.HEALTH_MONITOR: Rights(
            entries=SAYS[Party.HEALTH_MONITOR],
            reads=(Kind.WISH, Kind.STATUS, Kind.SIGNAL),
            makes=(Kind.STATUS, Kind.SIGNAL),
            hears=("hb.>",),
            says=("echo.>",),
        ),
        Role.SPARE_MANAGER: Rights(
            entries=SAYS[Party.SPARE_MANAGER],
            reads=(Kind.STATUS,),
        ),
        Role.DEFRAGMENTER: Rights(
            entries=SAYS[Party.DEFRAGMENTER],
            reads=(Kind.STATUS,),
        ),
        # The dispatcher is the archivist: it drops what its archive holds, and nothing else.
        Role.DISPATCHER: Rights(
            entries=SAYS[Party.DISPATCHER],
            reads=(Kind.STATUS, Kind.ASSIGN, Kind.JOBS),
            writes=(Kind.ASSIGN, Kind.JOBS, Kind.SNAP),
            purges=(Kind.LEDGER, Kind.SNAP),
            makes=(Kind.ASSIGN, Kind.JOBS),
        ),
        Role.GATEWAY: Rights(
            reads=(Kind.STATUS, Kind.SIGNAL, Kind.DEAD),
            says=("query.>",),
            asks=tuple(role for role in Role if role is not Role.GATEWAY),
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Subjects one may publish and subscribe; `answers`: also to whoever asked."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """One user of the server. Give `password` (plain or bcrypt) or `nkey` (the public key).

    `permissions` None: everything (the administrator).
    """

    name: str
    password: str | None = None
    nkey: str | None = None
    permissions: Permissions | None = None

    def config(self) -> dict[str, object]:
        """The entry for the server's list of users."""
        entry: dict[str, object] = (
            {"nkey": self.nkey}
            if self.nkey is not None
            else {"user": self.name, "password": self.password or ""}
        )
        if self.permissions is not None:
            allowed: dict[str, object] = {
                "publish": {"allow": list(self.permissions.publish)},
                "subscribe": {"allow": list(self.permissions.subscribe)},
            }
            if self.permissions.answers:
                allowed["allow_responses"] = {"max": 1, "expires": "1m"}
            entry["permissions"] = allowed
        return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a node is, as its subjects say it."""

    shard: str
    rack: str
    node: str


def service(cell: str, role: Role, identity: str, *, replicas: int = 1) -> Permissions:
    """What a service may do under an identity (which names its inboxes)."""
    rights, common = SERVICES[role], EVERY_SERVICE
    root = f"rackwright.{cell}."
    publish = [f"{root}ledger.{entry}" for entry in rights.entries]
    for kind in (*common.reads, *rights.reads):
        publish += _reading(cell, kind)
    for kind in (*common.writes, *rights.writes):
        publish.append(f"{subject_root(cell, kind)}>")
    publish += [f"$JS.API.STREAM.PURGE.{stream_name(cell, kind)}" for kind in rights.purges]
    if replicas == 1:
        publish += [f"$JS.API.STREAM.CREATE.{stream_name(cell, kind)}" for kind in rights.makes]
    publish += [f"{root}{subject}" for subject in rights.says]
    publish += [f"$SRV.PING.rackwright-{asked}" for asked in (role, *rights.asks)]
    hears = [f"{root}{subject}" for subject in (*common.hears, *rights.hears)]
    return Permissions(
        publish=tuple(publish),
        subscribe=(f"_INBOX_{identity}.>", "$SRV.>", *hears),
        answers=True,
    )


def agent(cell: str, identity: str, places: Sequence[Place] | None) -> Permissions:
    """What the agent of some nodes may do; `places` None: of any node (a pretended fleet).

    An agent makes no consumers: a consumer delivers to any subject its maker names. A pretended
    fleet, which may speak for every node anyway, may follow all jobs with one, and hear which
    faults somebody wants of its nodes.
    """
    assign, jobs = stream_name(cell, Kind.ASSIGN), stream_name(cell, Kind.JOBS)
    root = f"rackwright.{cell}."
    publish = [f"$JS.API.DIRECT.GET.{jobs}.>"]
    subscribe = [f"_INBOX_{identity}.>", f"{root}jobs.>"]
    if places is None:
        publish += [f"{root}{kind}.>" for kind in ("hb", "signal", "status")]
        publish += [f"$JS.API.DIRECT.GET.{assign}.>", *_reading(cell, Kind.JOBS)]
        subscribe += [f"{root}echo.>", f"{root}assign.>", f"{root}query.inject.>"]
        return Permissions(publish=tuple(publish), subscribe=tuple(subscribe), answers=True)
    for place in places:
        node = f"{place.shard}.{place.rack}.{place.node}"
        publish += [f"{root}{kind}.{node}" for kind in ("hb", "signal", "status")]
    for shard, rack in sorted({(place.shard, place.rack) for place in places}):
        publish.append(f"$JS.API.DIRECT.GET.{assign}.{subject_root(cell, Kind.ASSIGN)}{rack}")
        subscribe += [f"{root}echo.{shard}.{rack}", f"{root}echo.{shard}.{rack}.>"]
        subscribe.append(f"{root}assign.{rack}")
    return Permissions(publish=tuple(publish), subscribe=tuple(subscribe))


def user(cell: str, name: str) -> Permissions:
    """What somebody who submits jobs may do: wish about jobs in his own name, ask, hear.

    Wishes about nodes, racks and the cell are an operator's.
    """
    root = f"rackwright.{cell}."
    wishes = tuple(f"{root}wish.{name}.{wish.TYPE.partition('.')[2]}" for wish in JOB_WISHES)
    return Permissions(
        publish=(*wishes, f"{root}query.>"),
        subscribe=(f"_INBOX_{name}.>", f"{root}told.>"),
    )


def operator(cell: str, name: str) -> Permissions:
    """A user who may wish anything, and read every stream and bucket with the usual NATS tools."""
    mine = user(cell, name)
    kinds = (k for k in Kind if k is not Kind.INTAKE)
    reading = [subject for kind in kinds for subject in _reading(cell, kind)]
    more = ["$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$SRV.>"]
    return Permissions(
        publish=(*mine.publish, f"rackwright.{cell}.wish.{name}.>", *reading, *more),
        subscribe=(*mine.subscribe, f"rackwright.{cell}.>", "_INBOX.>"),
    )


def _reading(cell: str, kind: Kind) -> list[str]:
    name = stream_name(cell, kind)
    subjects = [
        f"$JS.API.STREAM.INFO.{name}",
        f"$JS.API.CONSUMER.CREATE.{name}.>",
        f"$JS.API.CONSUMER.DELETE.{name}.*",
        f"$JS.FC.{name}.>",
    ]
    if kind in (Kind.ASSIGN, Kind.JOBS, Kind.SNAP):
        subjects.append(f"$JS.API.DIRECT.GET.{name}.>")
    return subjects
