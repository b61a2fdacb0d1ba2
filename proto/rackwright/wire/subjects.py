"""The one place where subjects are built and taken apart.

Every subject starts with `rackwright.<cell>.`. Tokens are ids, whose grammar has no dot and no
wildcard, so a subject never means more than it says.
"""

from dataclasses import dataclass
from zlib import crc32

from rackwright.wire.ids import (
    CellName,
    JobId,
    LedgerId,
    NodeId,
    Owner,
    RackId,
    check_name,
)

ROOT = "rackwright"
SHARDS = 64
STREAMS = ("ledger", "wish", "signal", "status", "snap", "dead")


class InvalidSubject(ValueError):
    """A subject that is none of ours, with the rule it breaks."""

    def __init__(self, subject: str, rule: str) -> None:
        shown = subject if len(subject) <= 120 else subject[:117] + "..."
        super().__init__(f"subject {shown!r}: {rule}")
        self.subject = shown
        self.rule = rule


def shard_of(rack: RackId) -> str:
    """The two-digit shard of a rack, 00 to 63; the same in every process and for ever."""
    return f"{crc32(rack.encode()) % SHARDS:02d}"


@dataclass(frozen=True, slots=True)
class Subjects:
    """Builds the subjects of one cell. Raises InvalidId for a token that is no id."""

    cell: CellName

    def __post_init__(self) -> None:
        check_name("cell", self.cell)

    def _of(self, *tokens: str) -> str:
        return ".".join((ROOT, self.cell, *tokens))

    def all(self, stream: str) -> str:
        """Everything of one stream: `ledger`, `wish`, `signal`, `status`, `snap`, `dead`..."""
        return self._of(stream, ">")

    def entry(self, type_name: str) -> str:
        """`job.placed` lives at `rackwright.<cell>.ledger.job.placed`."""
        noun, _, verb = type_name.partition(".")
        return self._of("ledger", check_name("noun", noun), check_name("verb", verb))

    def told(self, type_name: str) -> str:
        """Where an entry is repeated for listeners once the ledger has accepted it.

        Its own subject is heard for refused appends too, so nobody listens there.
        """
        noun, _, verb = type_name.partition(".")
        return self._of("told", check_name("noun", noun), check_name("verb", verb))

    def wish(self, owner: Owner, type_name: str) -> str:
        """`wish.submit` of `ann` lives at `rackwright.<cell>.wish.ann.submit`."""
        _, _, verb = type_name.partition(".")
        return self._of("wish", check_name("owner", owner), check_name("wish", verb))

    def signal(self, rack: RackId, node: NodeId) -> str:
        """Faults of one node."""
        return self._node("signal", rack, node)

    def status(self, rack: RackId, node: NodeId) -> str:
        """The last state of one node."""
        return self._node("status", rack, node)

    def heartbeat(self, rack: RackId, node: NodeId) -> str:
        """Heartbeats of one node."""
        return self._node("hb", rack, node)

    def heartbeats(self, shard: str) -> str:
        """Heartbeats of all nodes of one shard (`*`: of all shards)."""
        return self._of("hb", shard, "*", "*")

    def echo(self, rack: RackId) -> str:
        """Echoes to the nodes of one rack."""
        return self._of("echo", shard_of(rack), check_name("rack", rack))

    def _node(self, kind: str, rack: RackId, node: NodeId) -> str:
        return self._of(kind, shard_of(rack), check_name("rack", rack), check_name("node", node))

    def snapshot(self, ledger: LedgerId, seq: int, part: str) -> str:
        """One chunk (`part` is its number) or the manifest (`manifest`) of a snapshot."""
        return self._of("snap", check_name("ledger", ledger), str(seq), check_name("part", part))

    def dead(self, stream: str) -> str:
        """Where what cannot be read of `stream` is set aside."""
        return self._of("dead", check_name("stream", stream))

    def query(self, name: str) -> str:
        """A query endpoint."""
        return self._of("query", *(check_name("query", token) for token in name.split(".")))

    def assignment_key(self, rack: RackId) -> str:
        """Key of a rack's value in the assignment bucket."""
        return check_name("rack", rack)

    def job_key(self, job: JobId) -> str:
        """Key of a job's value in the job bucket."""
        return check_name("job", job)


@dataclass(frozen=True, slots=True)
class WishSubject:
    """Who wishes (stamped by the bus, which lets nobody else publish there) and what."""

    owner: Owner
    type_name: str


def _tokens(cell: CellName, subject: str, stream: str, count: int) -> list[str]:
    tokens = subject.split(".")
    if tokens[:1] != [ROOT]:
        raise InvalidSubject(subject, f"must start with '{ROOT}.'")
    if tokens[1:2] != [cell]:
        raise InvalidSubject(subject, f"is not of cell {cell!r}")
    if tokens[2:3] != [stream]:
        raise InvalidSubject(subject, f"is not of stream {stream!r}")
    if len(tokens) != count:
        raise InvalidSubject(subject, f"must have {count} tokens, has {len(tokens)}")
    return tokens[3:]


def parse_entry(cell: CellName, subject: str) -> str:
    """The type name (`job.placed`) of a ledger subject. Raises InvalidSubject."""
    noun, verb = _tokens(cell, subject, "ledger", 5)
    return f"{noun}.{verb}"


def parse_wish(cell: CellName, subject: str) -> WishSubject:
    """Owner and type name of a wish subject. Raises InvalidSubject or InvalidId."""
    owner, verb = _tokens(cell, subject, "wish", 5)
    return WishSubject(Owner(check_name("owner", owner)), f"wish.{check_name('wish', verb)}")


def parse_node(cell: CellName, subject: str, stream: str) -> tuple[RackId, NodeId]:
    """Rack and node of a signal, status or heartbeat subject. Raises InvalidSubject, InvalidId."""
    shard, rack, node = _tokens(cell, subject, stream, 6)
    rack_id = RackId(check_name("rack", rack))
    if shard != shard_of(rack_id):
        raise InvalidSubject(subject, f"rack {rack} is of shard {shard_of(rack_id)}, not {shard}")
    return rack_id, NodeId(check_name("node", node))
