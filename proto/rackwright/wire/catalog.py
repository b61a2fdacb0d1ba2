"""Who says what to whom, where it is kept, and what may be lost: the tables behind AsyncAPI.

Each type has the services that may say it; each wish the one service that answers it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from rackwright.wire.codec import BODIES
from rackwright.wire.entries import ENTRIES
from rackwright.wire.wishes import ANY_WISH, NODE_WISHES


class Party(StrEnum):
    """Everybody who has an identity on the bus."""

    PLACER = "placer"
    HEALTH_MONITOR = "health-monitor"
    SPARE_MANAGER = "spare-manager"
    DEFRAGMENTER = "defragmenter"
    DISPATCHER = "dispatcher"
    NODE_AGENT = "node-agent"
    GATEWAY = "gateway"
    OWNER = "owner"
    ADMIN = "admin"


DECIDERS = (Party.PLACER, Party.HEALTH_MONITOR, Party.SPARE_MANAGER, Party.DEFRAGMENTER)
FOLDING = (*DECIDERS, Party.DISPATCHER, Party.GATEWAY)

# What each party may append to the ledger.
SAYS: Mapping[Party, tuple[str, ...]] = MappingProxyType(
    {
        Party.PLACER: (
            "automation.paused",
            "automation.resumed",
            "breaker.closed",
            "cell.upgraded",  # when an operator says that all software is ready
            "job.approved",
            "job.blocked",
            "job.cancelled",
            "job.failed",
            "job.finished",
            "job.finishing",
            "job.grown",
            "job.notified",  # of planned maintenance
            "job.pinned",
            "job.placed",
            "job.queued",
            "job.rejected",
            "job.released",
            "job.requeued",
            "job.resumed",
            "job.started",
            "maintenance.ended",
            "maintenance.scheduled",
            "node.cordoned",  # a swap that an owner asks for drains the node of that rank
            "policy.set",
            "rack.defined",
            "rack.held",
            "rack.released",
            "wish.refused",
            "worker.failed",
        ),
        Party.HEALTH_MONITOR: (
            "ledger.ticked",
            "node.check_asked",
            "node.checked",
            "node.cleaning",
            "node.cleared",
            "node.cordoned",
            "node.failed",
            "node.joined",
            "node.recovered",
            "node.repair_requested",
            "node.suspected",
            "node.uncordoned",
            "node.unfit",
            "rack.degraded",
            "rack.isolated",
            "rack.restored",
            "wish.refused",
        ),
        Party.SPARE_MANAGER: (
            "job.failed",
            "job.requeued",
            "job.shrunk",
            "job.suspended",
            "slice.moved",
            "slice.restarted",
            "slice.swapped",
        ),
        Party.DEFRAGMENTER: (
            "defrag.finished",
            "defrag.planned",
            "defrag.withdrawn",
            "job.notified",
            "slice.moved",
        ),
        Party.DISPATCHER: ("snapshot.verified",),
        Party.ADMIN: ("cell.upgraded", "ledger.created"),
    }
)

# The one service that answers each wish; its commits' `wishes_to` is the offset of its reading.
ANSWERS: Mapping[str, Party] = MappingProxyType(
    {wish.TYPE: Party.HEALTH_MONITOR if wish in NODE_WISHES else Party.PLACER for wish in ANY_WISH}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How one stream keeps its messages. `lost`: what may be lost, and why that is harmless."""

    stream: str
    storage: str
    retention: str
    lost: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One family of subjects. `reading` says how its readers get the messages."""

    key: str
    address: str
    keeping: str
    types: tuple[str, ...]
    says: tuple[Party, ...]
    hears: tuple[Party, ...]
    reading: str
    text: str


KEEPING: Mapping[str, Keeping] = MappingProxyType(
    {
        kept.stream: kept
        for kept in (
            Keeping(
                stream="ledger",
                storage="file, as many copies as the cell has servers (1, 3 or 5)",
                retention="no age limit; a full stream refuses; deletes denied; trimmed only "
                "behind verified snapshots",
                lost="nothing",
            ),
            Keeping(
                stream="wish",
                storage="file; with several servers a one-copy intake takes wishes in and the "
                "replicated stream copies from it",
                retention="no age limit; a full stream refuses",
                lost="nothing: answered by an entry, `wishes_to` in the ledger is the offset",
            ),
            Keeping(
                stream="signal",
                storage="memory, one copy",
                retention="64 newest per node, one hour",
                lost="the older of a storm: a node's 65 newest faults say no more than 64",
            ),
            Keeping(
                stream="status",
                storage="memory, one copy",
                retention="the last per node",
                lost="all but the last: it is state; agents write it again on reconnect",
            ),
            Keeping(
                stream="assign",
                storage="bucket in memory",
                retention="the last per rack, written by compare",
                lost="everything: written anew from the fleet, and absence is never an order",
            ),
            Keeping(
                stream="jobs",
                storage="bucket in memory",
                retention="the last per job, written by compare",
                lost="everything: as `assign`",
            ),
            Keeping(
                stream="snap",
                storage="file, as many copies as the ledger",
                retention="the last per subject; two verified snapshots always stay",
                lost="a snapshot: the one before and a longer tail of the ledger do",
            ),
            Keeping(
                stream="dead",
                storage="file, one copy",
                retention="7 days; a full stream drops the oldest",
                lost="the oldest: it is kept for people",
            ),
            Keeping(
                stream="none",
                storage="not stored (core NATS)",
                retention="none",
                lost="any: the next one comes, or the asker asks again",
            ),
        )
    }
)

_WISHES = tuple(
    Channel(
        key=wish.TYPE,
        address="rackwright.{cell}.wish.{owner}." + wish.TYPE.partition(".")[2],
        keeping="wish",
        types=(wish.TYPE,),
        says=(Party.OWNER,),
        hears=(ANSWERS[wish.TYPE],),
        reading="in order from the sequence after the reader's own `wishes_to` in the ledger",
        text="An envelope or the bare body. The bus lets only its user publish under {owner}.",
    )
    for wish in ANY_WISH
)

CHANNELS: tuple[Channel, ...] = (
    Channel(
        key="ledger",
        address="rackwright.{cell}.ledger.{noun}.{verb}",
        keeping="ledger",
        types=tuple(ENTRIES),
        says=tuple(SAYS),
        hears=FOLDING,
        reading="every message in order without a gap, from a snapshot or from 1; no acks",
        text="Appended by compare with the last sequence of the whole stream, observations "
        "without. A plain subscription hears refused appends too: listen to `told`.",
    ),
    Channel(
        key="told",
        address="rackwright.{cell}.told.{noun}.{verb}",
        keeping="none",
        types=tuple(ENTRIES),
        says=(),
        hears=(Party.OWNER,),
        reading="a core NATS subscription, wildcards allowed",
        text="The server repeats here each commit that the ledger has stored, for listeners that "
        "may miss some. What is stored may still be void: only the fold says.",
    ),
    *_WISHES,
    Channel(
        key="signal",
        address="rackwright.{cell}.signal.{shard}.{rack}.{node}",
        keeping="signal",
        types=("signal.fault",),
        says=(Party.NODE_AGENT,),
        hears=(Party.HEALTH_MONITOR,),
        reading="what is kept of the last 60 s, then what comes; no acks",
        text="Faults of one node. The bus lets an agent publish on its own node's subjects alone.",
    ),
    Channel(
        key="status",
        address="rackwright.{cell}.status.{shard}.{rack}.{node}",
        keeping="status",
        types=("status.node",),
        says=(Party.NODE_AGENT,),
        hears=FOLDING,
        reading="all last values, then every change; no acks",
        text="Session, boot, workers and their states: rewritten on change.",
    ),
    Channel(
        key="heartbeat",
        address="rackwright.{cell}.hb.{shard}.{rack}.{node}",
        keeping="none",
        types=("heartbeat",),
        says=(Party.NODE_AGENT,),
        hears=(Party.HEALTH_MONITOR,),
        reading="a core NATS subscription by shard",
        text="Sent every `heartbeat_s` of the policy.",
    ),
    Channel(
        key="echo",
        address="rackwright.{cell}.echo.{shard}.{rack}",
        keeping="none",
        types=("echo",),
        says=(Party.HEALTH_MONITOR,),
        hears=(Party.NODE_AGENT,),
        reading="a core NATS subscription to the own rack",
        text="An echo of a node's own session and heartbeat renews the lease of its workers.",
    ),
    Channel(
        key="assign",
        address="$KV.rackwright_{cell}_assign.{rack}",
        keeping="assign",
        types=("value.assignments",),
        says=(Party.DISPATCHER,),
        hears=(Party.NODE_AGENT,),
        reading="a watch of the own rack's key, read again on reconnect and every 30 s",
        text="What the nodes of one rack shall run and end.",
    ),
    Channel(
        key="jobs",
        address="$KV.rackwright_{cell}_jobs.{job}",
        keeping="jobs",
        types=("value.job",),
        says=(Party.DISPATCHER,),
        hears=(Party.NODE_AGENT,),
        reading="a get when an assignment names the job, a watch while it runs",
        text="Command, environment and membership of one job.",
    ),
    Channel(
        key="snap",
        address="rackwright.{cell}.snap.{ledger}.{seq}.{part}",
        keeping="snap",
        types=("snapshot.manifest",),
        says=(Party.DISPATCHER,),
        hears=FOLDING,
        reading="the newest manifest, then its chunks by number",
        text="{part} is `manifest`, written last, or the number of a chunk of raw bytes.",
    ),
    Channel(
        key="dead",
        address="rackwright.{cell}.dead.{stream}",
        keeping="dead",
        types=(),
        says=DECIDERS,
        hears=(Party.OWNER,),
        reading="by people, with the command line",
        text="The bytes of a wish, signal or status that could not be read. Headers: "
        "`Rackwright-Why`, `Rackwright-Subject`, `Rackwright-Seq`, `Rackwright-Source`.",
    ),
    Channel(
        key="query",
        address="rackwright.{cell}.query.{name}",
        keeping="none",
        types=(),
        says=(Party.OWNER,),
        hears=(Party.GATEWAY,),
        reading="request and reply; every answer shows the ledger's sequence it was made at",
        text="Questions about the fleet, in JSON. {name} is one word or several with dots.",
    ),
)

# Types that an envelope or a commit can carry; a test holds this equal to what CHANNELS names.
ALL_TYPES: tuple[str, ...] = tuple(sorted({*ENTRIES, *BODIES}))


def may_say(party: Party, type_name: str) -> bool:
    """Whether a party may publish messages of this type at all."""
    if type_name in ENTRIES:
        return type_name in SAYS.get(party, ())
    return any(party in channel.says for channel in CHANNELS if type_name in channel.types)
