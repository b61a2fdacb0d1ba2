"""What a service's mind hears (events), what it wants done (effects), and its one signature.

`handle(state, fleet, event) -> (state, effects)`. It touches nothing else. Each event carries two
times: `now`, the host's estimate of ledger time (seconds since the epoch, never behind the fold),
and `mono`, seconds of CLOCK_BOOTTIME of this process, for durations that must not jump.

A machine offers entries only when it is its `Turn`: the fold is at the ledger's end and no offer of
this process is in flight. A refused offer comes back as `Refused` once the fold has caught up.
"""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from rackwright.core.fleet import Fleet
from rackwright.wire.ids import MessageId, NodeId, Owner, RackId, SessionId
from rackwright.wire.message import Body, Entry
from rackwright.wire.quick import quick
from rackwright.wire.signals import Echo, Fault, NodeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events."""

    now: float
    mono: float


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Folded(Event):
    """A commit was folded; `fleet` is after it. `void`: it had no effect, `why` says the reason."""

    seq: int
    source: str
    type: str
    entries: tuple[Entry, ...]
    void: bool = False
    why: str = ""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Wished(Event):
    """A readable wish at `seq` of the wish stream, of `owner`, stored at `at`: the
    server's time, but no later than `now`."""

    seq: int
    id: MessageId
    owner: Owner
    at: float
    wish: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class WishSkipped(Event):
    """The wish at `seq` could not be read and was set aside."""

    seq: int


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(Event):
    """A fault signal; `at` is the server's time, but no later than `now`, `id` the message's."""

    id: MessageId
    at: float
    fault: Fault


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSeen(Event):
    """The last value of one node, at start or on change; `at` is the server's time, but no
    later than `now`."""

    id: MessageId
    at: float
    status: NodeStatus


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Heard(Event):
    """A heartbeat."""

    node: NodeId
    rack: RackId
    session: SessionId
    n: int
    head: int = 0
    steady_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies(Event):
    """How many copies of this service are present, and which of them this one is (from 0)."""

    present: int
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Room(Event):
    """How full the ledger's stream is (`used`, 0 to 1), and from where on submits are refused."""

    used: float
    refuse_at: float


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Acked(Event):
    """An append of this process was acknowledged and folded; it was sent at `sent_mono`."""

    sent_mono: float
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotStored(Event):
    """A whole snapshot is there at `seq`, by whichever copy; `sha256` of its bytes."""

    seq: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChecked(Event):
    """The fold from the snapshot at `seq` on to `to` gave the bytes of the one at `to`, or not."""

    seq: int
    to: int
    sha256: str
    equal: bool


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Event):
    """You may offer. Comes after anything changed and after each wake that was asked for."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Append these entries (1..64, one type) as one commit.

    `compare` False for observations. `wishes_to`: this service has answered all wishes up to it.
    """

    entries: tuple[Entry, ...]
    compare: bool = True
    wishes_to: int | None = None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Event):
    """Somebody else's commit came first; the fold has it now. Offer again what still holds."""

    offer: Offer


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAt:
    """Give me a Turn at this `mono` time, if nothing happens before."""

    mono: float


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class SendEcho:
    """Tell a rack which heartbeats were heard."""

    echo: Echo


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Write the value of `key` in `bucket` (`assign` or `jobs`); None deletes it."""

    bucket: str
    key: str
    value: Body | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSnapshot:
    """Store the fleet as it is at this sequence: chunks first, the manifest last."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSnapshot:
    """Load the snapshot at `seq` in another place, fold on to `to`, and compare with `sha256`."""

    seq: int
    to: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimLedger:
    """Archive the ledger up to `to` and drop it from the stream."""

    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimWishes:
    """Drop the wishes up to `to` from their stream: every one of them is answered."""

    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something an operator should see in the log: an event name and its numbers."""

    level: str
    event: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """So many more reports of faults that were taken for this (`kind`), to be counted."""

    kind: str
    by: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Attend:
    """Hear the heartbeats of these nodes (and their racks) besides those of one's own share."""

    nodes: tuple[tuple[RackId, NodeId], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """This copy should not be taken for ready, and why; an empty `why` ends the doubt."""

    why: str


Deed = (
    SendEcho
    | Project
    | WriteSnapshot
    | CheckSnapshot
    | TrimLedger
    | TrimWishes
    | Note
    | Tally
    | Doubt
    | Attend
)
Effect = Offer | WakeAt | Deed

S = TypeVar("S")


class Machine(Protocol, Generic[S]):
    """The mind of a service."""

    @property
    def service(self) -> str:
        """Its name, as in the source of its commits."""
        ...

    def start(self, copy: int) -> S:
        """The state of a copy that has just started and knows nothing but the fleet."""
        ...

    def handle(self, state: S, fleet: Fleet, event: Event) -> tuple[S, list[Effect]]:
        """Take one event."""
        ...
