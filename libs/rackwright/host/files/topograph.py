"""Topograph's model YAML: blocks of nodes on leaf switches, and the tree above them.

The annotation `.../domain` of a block is the NVLink domain, which is the rack; its path are the
switches above all of its nodes. A domain too large for a rack is read as its sub-domains, whose
last level is then the domain: a slice in one of them is still in the domain.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackwright.host.files.racks import Draft, hosts
from rackwright.host.files.text import Document, Path, kind_of
from rackwright.wire.nodes import MAX_RACK_NODES

DOMAIN = ("/domain", "network.topology.nvidia.com/accelerator")
SUB_DOMAIN = ("/sub-domain",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Nodes on one leaf switch. `chain`: the switches over them, outermost first."""

    domain: str
    sub_domain: str
    chain: tuple[str, ...]
    nodes: Sequence[str]
    line: int | None


def read_topograph(document: Document, gpus_per_node: int) -> tuple[list[Draft], list[str]]:
    """Racks, and the nodes whose domain is not told. Raises FileError."""
    told = document.mapping((), document.value, "a model")
    parents = _parents(document, told.get("switches", {}))
    blocks = told["blocks"]
    if not isinstance(blocks, list):
        raise document.error(("blocks",), f"must be a list, not {kind_of(blocks)}")
    domains: dict[str, list[Block]] = {}
    unknown: list[str] = []
    for at, value in enumerate(blocks):
        block = _block(document, ("blocks", at), value, parents)
        if block.domain:
            domains.setdefault(block.domain, []).append(block)
        else:
            unknown.extend(block.nodes)
    racks = [rack for domain in domains.values() for rack in _racks(domain)]
    return _drafts(racks, set(parents.values()), gpus_per_node), unknown


def _parents(document: Document, value: object) -> dict[str, str]:
    """The switch above each switch. Raises FileError unless it is a tree."""
    parents: dict[str, str] = {}
    for switch, told in document.mapping(("switches",), value, "switches").items():
        path: Path = ("switches", switch)
        below = document.mapping(path, told or {}, "a switch").get("switches") or []
        if not isinstance(below, list):
            raise document.error(path, f"`switches` must be a list, not {kind_of(below)}")
        for at, item in enumerate(below):
            child = document.text((*path, "switches", at), item)
            if parents.setdefault(child, switch) != switch:
                problem = f"switch {child!r} is under {parents[child]!r} and under {switch!r}"
                raise document.error((*path, "switches", at), problem)
    for switch in parents:
        _chain(document, switch, parents)
    return parents


def _chain(document: Document, switch: str, parents: Mapping[str, str]) -> tuple[str, ...]:
    chain = [switch]
    while (above := parents.get(chain[-1])) is not None:
        if above in chain:
            raise document.error(("switches", switch), "is above itself; the tree has a loop")
        chain.append(above)
    return tuple(reversed(chain))


def _block(document: Document, path: Path, value: object, parents: Mapping[str, str]) -> Block:
    told = document.mapping(path, value, "a block")
    notes = document.mapping((*path, "annotations"), told.get("annotations") or {}, "a mapping")
    nodes = told.get("nodes") or []
    if not isinstance(nodes, list):
        raise document.error((*path, "nodes"), f"must be a list, not {kind_of(nodes)}")
    line = document.lines.get(path)
    texts = [document.text((*path, "nodes", at), item) for at, item in enumerate(nodes)]
    switch = told.get("switch")
    return Block(
        domain=_note(document, (*path, "annotations"), notes, DOMAIN),
        sub_domain=_note(document, (*path, "annotations"), notes, SUB_DOMAIN),
        chain=()
        if switch is None
        else _chain(document, document.text((*path, "switch"), switch), parents),
        nodes=hosts(document.name, texts, field=f"block {path[-1]}", line=line),
        line=line,
    )


def _note(
    document: Document, path: Path, notes: Mapping[str, object], endings: tuple[str, ...]
) -> str:
    for key, value in notes.items():
        if key.endswith(endings) and value is not None:
            return document.text((*path, key), value)
    return ""


def _racks(domain: list[Block]) -> list[tuple[str, tuple[str, ...], list[Block]]]:
    """Name, innermost level and blocks of each rack that a domain is read as."""
    size = sum(len(block.nodes) for block in domain)
    if size <= MAX_RACK_NODES or not all(block.sub_domain for block in domain):
        return [(domain[0].domain, (), domain)]
    parts: dict[str, list[Block]] = {}
    for block in domain:
        parts.setdefault(block.sub_domain, []).append(block)
    name = domain[0].domain
    return [(f"{name}-{part}", (name,), blocks) for part, blocks in parts.items()]


def _common(chains: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What all of them begin with."""
    same = []
    for level in zip(*chains, strict=False):
        if len(set(level)) > 1:
            break
        same.append(level[0])
    return tuple(same)


def _drafts(
    racks: list[tuple[str, tuple[str, ...], list[Block]]], inner: set[str], gpus_per_node: int
) -> list[Draft]:
    paths = [_common([block.chain for block in blocks]) for _, _, blocks in racks]
    shared = Counter(switch for path in paths for switch in path)

    def levels(path: tuple[str, ...]) -> tuple[str, ...]:
        # A leaf switch with one rack is no level: it says the same as the rack.
        leaf = bool(path) and path[-1] not in inner and shared[path[-1]] == 1
        return path[:-1] if leaf else path

    return [
        Draft(
            rack=name,
            nodes=[node for block in blocks for node in block.nodes],
            path=(*levels(path), *innermost),
            gpus_per_node=gpus_per_node,
            line=blocks[0].line,
        )
        for (name, innermost, blocks), path in zip(racks, paths, strict=True)
    ]
