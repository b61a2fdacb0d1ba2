"""A topology file: which nodes share an NVLink domain, in our own YAML or in what a site has.

Ours, where `nodes` is a host list or several, and `path` names the levels above the rack, outermost
first:

    gpus_per_node: 4
    racks:
      - {rack: r01, path: [hall-1, block-1], nodes: "n[001-018]"}
      - {rack: r02, path: [hall-1, block-1], nodes: ["n[019-035]", n900], gpus_per_node: 4}

Also read: "RACKSxNODES" or "RACKSxNODESxGPUS" (racks r01, r02 ... of nodes r01-n01 ...),
Topograph's model YAML, Slurm's topology.conf and topology.yaml of the block plugin, and Alibaba's
CSV ip,DSW,PSW,ASW. A node whose rack is not told has none: no wider switch is ever taken for it.

Ids are as told, but a hexadecimal name of 64 digits or more is cut to its first 16, in lower case,
and of a rack `<ClusterUUID>.<CliqueID>` the UUID is the name.
"""

import re

from rackwright.host.files.foreign import read_alibaba, read_slurm_conf, read_slurm_yaml
from rackwright.host.files.racks import Draft, build, hosts
from rackwright.host.files.text import Document, FileError, Path, decode, kind_of
from rackwright.host.files.topograph import read_topograph
from rackwright.host.files.yamltext import read_yaml
from rackwright.wire.nodes import MAX_GPUS, MAX_RACK_NODES, RackSpec

MAX_TOPOLOGY_FILE = 16_777_216  # bytes
MAX_RACKS = 100_000
MAX_NODES = 400_000  # of a size that is typed: sixteen times the largest cell measured
GPUS_PER_NODE = 4

FORMATS = (
    "known are our YAML (`racks:`), RACKSxNODES such as 4x18, Topograph's model YAML (`blocks:`),"
    " Slurm's topology.conf and topology.yaml with blocks, and CSV ip,DSW,PSW,ASW"
)

_SHORTHAND = re.compile(r"([0-9]{1,6})x([0-9]{1,3})(?:x([0-9]{1,2}))?", re.IGNORECASE)
_SLURM = re.compile(r"(BlockName|BlockSizes|SwitchName|Include)\b", re.IGNORECASE)
_CSV = re.compile(r"ip\s*,\s*DSW\s*,\s*PSW\s*,\s*ASW\s*", re.IGNORECASE)


def is_shorthand(text: str) -> bool:
    """Whether a text is no file but a size, such as 4x18 or 140x18x4."""
    return _SHORTHAND.fullmatch(text.strip()) is not None


def read_topology(
    data: bytes | str,
    *,
    name: str = "topology",
    gpus_per_node: int = GPUS_PER_NODE,
    leave_out_unknown: bool = False,
) -> tuple[RackSpec, ...]:
    """The racks of a topology in any known format; `gpus_per_node` where the file does not say.

    Nodes whose rack is unknown are an error that names them, or left out if so asked. Raises
    FileError.
    """
    text = decode(data, name=name, limit=MAX_TOPOLOGY_FILE)
    if is_shorthand(text):
        return build(name, _shorthand(name, text.strip(), gpus_per_node))
    first = next((line for line in text.splitlines() if line.split("#")[0].strip()), "").strip()
    if _SLURM.match(first):
        return build(name, read_slurm_conf(text, name, gpus_per_node))
    if _CSV.fullmatch(first):
        drafts, unknown = read_alibaba(text, name, gpus_per_node)
    else:
        drafts, unknown = _from_yaml(read_yaml(text, name=name), gpus_per_node)
    if unknown and not leave_out_unknown:
        some = ", ".join(unknown[:5]) + (" ..." if len(unknown) > 5 else "")
        problem = f"{len(unknown)} nodes have no rack ({some}); name it, or leave them out"
        raise FileError(name, problem)
    return build(name, drafts)


def _from_yaml(document: Document, gpus_per_node: int) -> tuple[list[Draft], list[str]]:
    match document.value:
        case {"racks": _}:
            return _own(document, gpus_per_node), []
        case {"blocks": _}:
            return read_topograph(document, gpus_per_node)
        case [{"topology": _}, *_]:
            return read_slurm_yaml(document, gpus_per_node), []
        case _:
            raise FileError(document.name, f"is no topology; {FORMATS}")


def _shorthand(name: str, text: str, gpus_per_node: int) -> list[Draft]:
    told = _SHORTHAND.fullmatch(text)
    assert told is not None
    racks, nodes = int(told[1]), int(told[2])
    gpus = gpus_per_node if told[3] is None else int(told[3])
    for what, count, most in (
        ("racks", racks, MAX_RACKS),
        ("nodes in a rack", nodes, MAX_RACK_NODES),
    ):
        if not 1 <= count <= most:
            raise FileError(name, f"{text}: {count} {what}, 1 to {most} are possible")
    if racks * nodes > MAX_NODES:
        raise FileError(name, f"{text}: {racks * nodes} nodes, at most {MAX_NODES} are possible")
    if gpus > MAX_GPUS:
        raise FileError(name, f"{text}: {gpus} GPUs a node, 0 to {MAX_GPUS} are possible")
    wide = max(2, len(str(racks)))
    deep = max(2, len(str(nodes)))
    names = [f"r{rack:0{wide}}" for rack in range(1, racks + 1)]
    return [
        Draft(
            rack=rack,
            nodes=[f"{rack}-n{node:0{deep}}" for node in range(1, nodes + 1)],
            gpus_per_node=gpus,
        )
        for rack in names
    ]


def _own(document: Document, gpus_per_node: int) -> list[Draft]:
    told = document.mapping((), document.value, "a topology")
    document.only((), told, ("racks", "gpus_per_node"))
    racks = told["racks"]
    if not isinstance(racks, list):
        raise document.error(("racks",), f"must be a list, not {kind_of(racks)}")
    default = _count(document, ("gpus_per_node",), told.get("gpus_per_node", gpus_per_node))
    return [_own_rack(document, ("racks", at), rack, default) for at, rack in enumerate(racks)]


def _own_rack(document: Document, path: Path, value: object, default: int) -> Draft:
    told = document.mapping(path, value, "a rack")
    document.only(path, told, ("rack", "path", "nodes", "gpus_per_node"))
    for key in ("rack", "nodes"):
        if key not in told:
            raise document.error(path, f"{key}: is missing")
    here = (*path, "nodes")
    line = document.lines.get(path)
    return Draft(
        rack=document.text((*path, "rack"), told["rack"]),
        nodes=hosts(document.name, _listed(document, here, told["nodes"]), line=line),
        path=tuple(_listed(document, (*path, "path"), told.get("path", []))),
        gpus_per_node=_count(
            document, (*path, "gpus_per_node"), told.get("gpus_per_node", default)
        ),
        line=line,
    )


def _listed(document: Document, path: Path, value: object) -> list[str]:
    """A text or a list of texts, as a list."""
    if isinstance(value, list):
        return [document.text((*path, at), item) for at, item in enumerate(value)]
    return [document.text(path, value)]


def _count(document: Document, path: Path, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_GPUS:
        raise document.error(path, f"must be a whole number, 0 to {MAX_GPUS}, not {kind_of(value)}")
    return value
