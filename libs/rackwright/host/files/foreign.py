"""Topologies of Slurm's block plugin (topology.conf, topology.yaml) and of Alibaba's CSV.

Slurm's block is the rack; its planning sizes (`BlockSizes`) are a policy and not read. A switch
tree says nothing of NVLink, so a file that has only one is refused. In the CSV the access switch
(ASW) is the rack; a column above it is a level if each rack has one value in it.
"""

import re
from collections.abc import Iterator
from typing import Any

from rackwright.host.files.racks import Draft, hosts
from rackwright.host.files.text import Document, FileError, Path, kind_of

TREE_ONLY = "has a switch tree and no blocks: which nodes share NVLink is not told"

_SETTING = re.compile(r"(?P<key>[A-Za-z]+)\s*=\s*(?P<value>\S+)")


def _settings(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and `Key=Value` settings (keys in lower case) of each line that has any."""
    told, begun = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        told, begun = told + line.split("#")[0], begun or number
        if told.rstrip().endswith("\\"):
            told = told.rstrip()[:-1] + " "
            continue
        if told.strip():
            rest = _SETTING.sub("", told).strip()
            if rest:
                raise FileError(name, f"{rest[:40]!r} is no Key=Value of Slurm's", line=begun)
            yield begun, {found["key"].lower(): found["value"] for found in _SETTING.finditer(told)}
        told, begun = "", 0


def read_slurm_conf(text: str, name: str, gpus_per_node: int) -> list[Draft]:
    """The blocks of a topology.conf. Raises FileError."""
    drafts = []
    switches = 0
    for line, settings in _settings(text, name):
        match settings:
            case {"blockname": block, "nodes": nodes}:
                found = hosts(name, [nodes], field=block, line=line)
                drafts.append(
                    Draft(rack=block, nodes=found, gpus_per_node=gpus_per_node, line=line)
                )
            case {"blockname": block}:
                raise FileError(name, "Nodes= is missing", field=block, line=line)
            case {"switchname": _}:
                switches += 1
            case {"blocksizes": _}:
                pass
            case _:
                keys = ", ".join(settings)
                raise FileError(name, f"{keys}: BlockName= or BlockSizes= was expected", line=line)
    if not drafts and switches:
        raise FileError(name, TREE_ONLY)
    return drafts


def read_slurm_yaml(document: Document, gpus_per_node: int) -> list[Draft]:
    """The blocks of a topology.yaml: of its only block topology, or the default one."""
    found: list[tuple[Path, Any, bool]] = []
    for at, value in enumerate(document.value):
        told = document.mapping((at,), value, "a topology")
        if told.get("block"):
            found.append(((at, "block"), told["block"], told.get("cluster_default") is True))
    chosen = found if len(found) == 1 else [one for one in found if one[2]]
    if not found:
        raise FileError(document.name, TREE_ONLY)
    if len(chosen) != 1:
        problem = f"has {len(found)} block topologies; mark one with cluster_default: true"
        raise FileError(document.name, problem)
    path, value, _ = chosen[0]
    blocks = document.mapping(path, value, "a block topology").get("blocks") or []
    if not isinstance(blocks, list):
        raise document.error((*path, "blocks"), f"must be a list, not {kind_of(blocks)}")
    return [
        _slurm_block(document, (*path, "blocks", at), block, gpus_per_node)
        for at, block in enumerate(blocks)
    ]


def _slurm_block(document: Document, path: Path, value: object, gpus_per_node: int) -> Draft:
    told = document.mapping(path, value, "a block")
    for key in ("block", "nodes"):
        if key not in told:
            raise document.error(path, f"{key}: is missing")
    line = document.lines.get(path)
    nodes = document.text((*path, "nodes"), told["nodes"])
    return Draft(
        rack=document.text((*path, "block"), told["block"]),
        nodes=hosts(document.name, [nodes], line=line),
        gpus_per_node=gpus_per_node,
        line=line,
    )


def read_alibaba(text: str, name: str, gpus_per_node: int) -> tuple[list[Draft], list[str]]:
    """The racks of a CSV ip,DSW,PSW,ASW, and the nodes without an access switch."""
    rows: dict[str, list[tuple[int, list[str]]]] = {}
    unknown: list[str] = []
    header = True
    for number, line in enumerate(text.splitlines(), 1):
        if not line.split("#")[0].strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 4 or not cells[0]:
            raise FileError(name, "a line must have the four values ip,DSW,PSW,ASW", line=number)
        if header:
            header = False
        elif cells[3]:
            rows.setdefault(cells[3], []).append((number, cells))
        else:
            unknown.append(cells[0])
    for rack, found in rows.items():
        cores = {cells[1]: number for number, cells in reversed(found)}
        if len(cores) > 1:
            where = " and ".join(f"{core} (line {line})" for core, line in sorted(cores.items()))
            raise FileError(name, f"access switch {rack} is under {where}", line=found[0][0])
    levels = [
        column
        for column in (1, 2)
        if all(len({cells[column] for _, cells in found}) == 1 for found in rows.values())
    ]
    return [
        Draft(
            rack=rack,
            nodes=[cells[0] for _, cells in found],
            path=tuple(found[0][1][column] for column in levels if found[0][1][column]),
            gpus_per_node=gpus_per_node,
            line=found[0][0],
        )
        for rack, found in rows.items()
    ], unknown
