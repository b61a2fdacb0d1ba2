"""What is fuzzed: each reader takes any bytes, and raises what it promises and nothing else.

What was read must also be writable and mean the same, where there is a way back.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rackwright.agent.xid import MAX_TEXT, head_of, parse_xid
from rackwright.core.fleet import Fleet
from rackwright.core.snapshot import dump, load
from rackwright.host.files.hostlist import HostlistError, expand
from rackwright.host.files.jobfile import job_from_json, read_job
from rackwright.host.files.text import FileError
from rackwright.host.files.topologyfile import read_topology
from rackwright.wire.codec import (
    Unreadable,
    decode,
    decode_commit,
    decode_of_node,
    decode_wish,
    encode,
)
from rackwright.wire.entries import ENTRIES
from rackwright.wire.ids import CellName, InvalidId, RackId
from rackwright.wire.message import Body
from rackwright.wire.signals import Fault, Heartbeat, NodeStatus
from rackwright.wire.subjects import InvalidSubject, parse_entry, parse_node, parse_wish, shard_of
from rackwright.wire.values import JobValue, RackAssignments, SnapshotManifest
from rackwright.wire.wishes import ANY_WISH

CELL = CellName("alpha")
EXAMPLES = Path(__file__).parents[2] / "proto" / "examples" / "v1"
SIGNALS: dict[str, type[Fault | NodeStatus | Heartbeat]] = {
    "signal": Fault,
    "status": NodeStatus,
    "hb": Heartbeat,
}
VALUES: tuple[type[Body], ...] = (RackAssignments, JobValue, SnapshotManifest)
WISHES = tuple(kind.TYPE for kind in ANY_WISH)


def _split(data: bytes, choices: int) -> tuple[int, bytes]:
    """The first byte chooses, the rest is what is read."""
    return (data[0] % choices if data else 0), data[1:]


def commit(data: bytes) -> None:
    """An entry of the ledger, of any type."""
    chosen, rest = _split(data, len(ENTRIES))
    type_name = sorted(ENTRIES)[chosen]
    read = decode_commit(type_name, rest)
    assert decode_commit(type_name, encode(read)) == read


def wish(data: bytes) -> None:
    """A wish, in an envelope or bare."""
    chosen, rest = _split(data, len(WISHES))
    body, _ = decode_wish(WISHES[chosen], rest, cell=CELL)
    assert decode_wish(WISHES[chosen], encode(body)) == (body, None)


def value(data: bytes) -> None:
    """A value of a bucket."""
    chosen, rest = _split(data, len(VALUES))
    kind: Any = VALUES[chosen]
    read = decode(kind, rest)
    assert decode(kind, encode(read)) == read


def node(data: bytes) -> None:
    """What a node says, on a subject as foreign as its text."""
    chosen, rest = _split(data, len(SIGNALS))
    stream, kind = sorted(SIGNALS.items())[chosen]
    on, _, body = rest.partition(b"\n")
    decode_of_node(kind, body, cell=CELL, stream=stream, subject=on.decode("utf-8", "replace"))


def subject(data: bytes) -> None:
    """A subject of the ledger, of wishes or of nodes."""
    chosen, rest = _split(data, 2 + len(SIGNALS))
    text = rest.decode("utf-8", "replace")
    if chosen < 2:
        (parse_entry, parse_wish)[chosen](CELL, text)
    else:
        parse_node(CELL, text, sorted(SIGNALS)[chosen - 2])


def kernel_log(data: bytes) -> None:
    """A line of a kernel log."""
    head, line = head_of(data), parse_xid(data)
    assert (head is None) == (line is None)
    if line is not None:
        assert head == (line.pci, line.xid)
        assert len(line.text) <= MAX_TEXT
        assert all(0 <= word < 1 << 32 for word in line.words)


def job_file(data: bytes) -> None:
    """A job file in YAML."""
    read_job(data, default_name="j")


def job_json(data: bytes) -> None:
    """A job in JSON, or a submit wish."""
    job_from_json(data, default_name="j")


def topology_file(data: bytes) -> None:
    """A topology in any of its formats."""
    names = [name for rack in read_topology(data) for name in rack.nodes]
    assert len(names) == len(set(names))


def host_list(data: bytes) -> None:
    """A list of hosts as Slurm writes them."""
    expand(data.decode("utf-8", "replace"))


def snapshot(data: bytes) -> None:
    """A snapshot of the fleet."""
    load(data)


REFUSALS: dict[Callable[[bytes], None], tuple[type[Exception], ...]] = {
    commit: (Unreadable,),
    wish: (Unreadable, InvalidId),
    value: (Unreadable,),
    node: (Unreadable, InvalidSubject, InvalidId),
    subject: (InvalidSubject, InvalidId),
    kernel_log: (),
    job_file: (FileError,),
    job_json: (FileError,),
    topology_file: (FileError,),
    host_list: (HostlistError,),
    snapshot: (Unreadable,),
}
"""What each reader may raise; anything else is a bug."""

TARGETS = {target.__name__: target for target in REFUSALS}


def took(target: str, data: bytes) -> bool:
    """Did the reader read it? False: it refused it as it promises to. Raises what it should not."""
    reader = TARGETS[target]
    try:
        reader(data)
    except REFUSALS[reader]:
        return False
    return True


TOPOLOGIES = (
    b"4x18",
    b"racks:\n- rack: r0\n  nodes: [a, b]\n",
    b"BlockName=b1 Nodes=n[001-018,021]\nBlockSizes=18\n",
    b"ip,DSW,PSW,ASW\nh1,G6,P10,S14\n",
)
LINES = (
    b"[ 12.3] NVRM: Xid (PCI:0009:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off",
    b"NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 08 (0x004505c6 0x0000)",
    b"NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Reset)",
)
JOB = b"name: train\nnum_nodes: 16\nresources: {accelerators: GB200:4}\nrun: |\n  python t.py\n"


def _examples() -> Iterator[tuple[str, bytes]]:
    for path in sorted(EXAMPLES.glob("*.json")):
        yield path.stem, path.read_bytes()


def _subject(stream: str) -> bytes:
    rack = RackId("r07")
    return f"rackwright.{CELL}.{stream}.{shard_of(rack)}.{rack}.r07-n03\n".encode()


def seeds(target: str) -> list[bytes]:
    """Good input to start from: the frozen examples, and lines and files as people have them."""
    if target == "commit":
        names = sorted(ENTRIES)
        return [bytes([names.index(name)]) + data for name, data in _examples() if name in names]
    if target == "wish":
        return [bytes([WISHES.index(n)]) + data for n, data in _examples() if n in WISHES]
    if target == "value":
        kinds = [kind.TYPE for kind in VALUES]
        return [bytes([kinds.index(n)]) + data for n, data in _examples() if n in kinds]
    if target == "node":
        examples = dict(_examples())
        return [
            bytes([place]) + _subject(stream) + examples[kind.TYPE]
            for place, (stream, kind) in enumerate(sorted(SIGNALS.items()))
        ]
    return {
        "subject": [
            b"\0rackwright.alpha.ledger.job.placed",
            b"\1rackwright.alpha.wish.ann.submit",
        ],
        "kernel_log": list(LINES),
        "job_file": [JOB],
        "job_json": [b'{"name": "a", "num_nodes": 2, "run": "true"}'],
        "topology_file": list(TOPOLOGIES),
        "host_list": [b"n[001-018,021],m[1-2]-gpu", b"a,b"],
        "snapshot": [dump(Fleet())],
    }[target]
