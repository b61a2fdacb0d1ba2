"""Racks as a topology file tells them, and the checks that every format shares."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rackwright.host.files.hostlist import HostlistError, expand
from rackwright.host.files.text import FileError
from rackwright.wire.ids import InvalidId, NodeId, RackId, check_name
from rackwright.wire.nodes import MAX_GPUS, MAX_RACK_NODES, RackSpec

LONG_HEX = 16  # digits kept of a name that is a long hexadecimal number

_HEX = re.compile(r"[0-9A-Fa-f]{64,}")
_CLIQUE = re.compile(r"(?P<cluster>[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\.[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One rack as told, not yet checked. `line` is where the file speaks of it."""

    rack: str
    nodes: Sequence[str]
    path: tuple[str, ...] = ()
    gpus_per_node: int
    line: int | None = None


def node_name(told: str) -> str:
    """The id of a node: as told, or the first 16 digits of a hexadecimal name of 64 or more."""
    return told[:LONG_HEX].lower() if _HEX.fullmatch(told) else told


def rack_name(told: str) -> str:
    """The id of a rack: as told, or of `<ClusterUUID>.<CliqueID>` the UUID, which is the rack."""
    clique = _CLIQUE.fullmatch(told)
    return clique["cluster"] if clique else told


def hosts(name: str, told: Iterable[str], *, field: str = "", line: int | None = None) -> list[str]:
    """The nodes of some host lists. Raises FileError."""
    found: list[str] = []
    for text in told:
        try:
            found.extend(expand(text))
        except HostlistError as error:
            raise FileError(name, str(error), field=field, line=line) from error
    return found


def build(name: str, drafts: Sequence[Draft]) -> tuple[RackSpec, ...]:
    """The racks of a file, in its order. Raises FileError where they contradict each other."""
    if not drafts:
        raise FileError(name, "tells of no rack")
    racks: dict[RackId, Draft] = {}
    homes: dict[NodeId, Draft] = {}
    specs = []
    for draft in drafts:
        rack = RackId(_checked(name, draft, "rack", rack_name(draft.rack)))
        if rack in racks:
            before = racks[rack].line
            first = "" if before is None else f", first on line {before}"
            raise FileError(name, f"rack {rack!r} stands here again{first}", line=draft.line)
        racks[rack] = draft
        nodes = tuple(_node(name, draft, told, homes) for told in draft.nodes)
        _size(name, draft, nodes)
        specs.append(
            RackSpec(rack=rack, path=draft.path, nodes=nodes, gpus_per_node=draft.gpus_per_node)
        )
    return tuple(specs)


def _checked(name: str, draft: Draft, field: str, value: str) -> str:
    try:
        return check_name(field, value)
    except InvalidId as error:
        hint = "; use the short host name" if field == "node" and "." in value else ""
        problem = f"{error.value!r} is no name for a {field}: must be {error.rule}{hint}"
        raise FileError(name, problem, line=draft.line) from error


def _node(name: str, draft: Draft, told: str, homes: dict[NodeId, Draft]) -> NodeId:
    node = NodeId(_checked(name, draft, "node", node_name(told)))
    home = homes.setdefault(node, draft)
    if home is not draft:
        where = "" if home.line is None else f" (line {home.line})"
        problem = f"node {node!r} is in rack {home.rack!r}{where} and in rack {draft.rack!r}"
        raise FileError(name, f"{problem}; a node has one rack", line=draft.line)
    return node


def _size(name: str, draft: Draft, nodes: Sequence[NodeId]) -> None:
    count = len(nodes)
    rack = f"rack {draft.rack!r}"
    if not count:
        raise FileError(name, f"{rack} has no nodes; leave it out", line=draft.line)
    if count > MAX_RACK_NODES:
        problem = f"{rack} has {count} nodes, at most {MAX_RACK_NODES} are possible"
        raise FileError(name, problem, line=draft.line)
    if len(set(nodes)) < count:
        twice = next(node for node in nodes if nodes.count(node) > 1)
        raise FileError(name, f"{rack} names node {twice!r} twice", line=draft.line)
    if not 0 <= draft.gpus_per_node <= MAX_GPUS:
        problem = f"{rack} has {draft.gpus_per_node} GPUs a node, 0 to {MAX_GPUS} are possible"
        raise FileError(name, problem, line=draft.line)
