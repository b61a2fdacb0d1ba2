"""The settings of an agent: the node it runs on, or a file with many virtual ones."""

import json
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rackwright.agent.fleet import KMSG, NodeConfig
from rackwright.agent.nvml import NodeReading, read_node
from rackwright.host.config import Settings
from rackwright.host.errors import BadSetting
from rackwright.wire.codec import Unreadable, read_json
from rackwright.wire.ids import InvalidId, NodeId, RackId, check_name
from rackwright.wire.neighbours import key_of
from rackwright.wire.nodes import Hardware

LEAST_SECRET = 16  # characters of the neighbours' secret
DMI = Path("/sys/class/dmi/id")
MEMINFO = Path("/proc/meminfo")


def options() -> list[click.Option]:
    """The flags that only an agent has."""

    def path(**more: Any) -> click.Path:
        return click.Path(path_type=Path, **more)

    def option(name: str, text: str, **more: Any) -> click.Option:
        variable = f"RACKWRIGHT_{name.upper().replace('-', '_')}"
        return click.Option([f"--{name}"], help=text, envvar=variable, show_envvar=True, **more)

    return [
        option("node", "Name of this node; by default the host's."),
        option("rack", "The rack it is in."),
        option("gpus", "GPUs, where there is no driver to ask.", type=click.IntRange(0, 16)),
        option("address", "Where peers reach this node; by default the host's name."),
        option("fleet", "File of virtual nodes, instead of this node.", type=path(exists=True)),
        option("pretend", "Workers are no processes.", is_flag=True),
        option("inject", "Allow faults on demand (virtual nodes).", is_flag=True),
        option("hooks", "Directory with prolog, membership, epilog.", type=path(exists=True)),
        option("neighbours-port", "UDP port where neighbours ask; 0: any free one.",
               type=click.IntRange(0, 65_535), default=0),
        option("neighbours-host", "Where that port listens.", default="0.0.0.0"),
        option("neighbours-key", "File with a secret that all agents of the cell share; without it "
               "neighbours are not asked.", type=path(exists=True, dir_okay=False)),
        option("kernel-log", "A file to read instead of /dev/kmsg.", type=path()),
    ]  # fmt: skip


def neighbours_key(settings: Settings) -> bytes | None:
    """The key of what agents ask each other; None: no port is opened. Raises BadSetting."""
    file = settings.more["neighbours_key"]
    if file is None:
        return None
    try:
        secret = file.read_text(encoding="ascii").strip()
    except UnicodeDecodeError as error:
        raise BadSetting("neighbours-key", f"{file} must hold plain ASCII") from error
    if len(secret) < LEAST_SECRET:
        raise BadSetting("neighbours-key", f"{file} must hold {LEAST_SECRET} characters or more")
    return key_of(secret, settings.cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetNode:
    """One virtual node in the file of `--fleet`; paths are below the state directory."""

    node: str
    rack: str
    gpus: int = 4
    gpu_model: str = "GB200"
    driver: str = "virtual"
    cores: int = 144
    memory_gb: float = 960.0
    address: str = "127.0.0.1"


def read_nodes(more: dict[str, Any], state_dir: Path | None) -> tuple[NodeConfig, ...]:
    """The nodes to host. Raises BadSetting."""
    if state_dir is None:
        raise BadSetting("state-dir", "an agent needs a directory that outlives it")
    if more["fleet"] is not None:
        if more["node"] is not None or more["rack"] is not None:
            raise BadSetting("fleet", "give either a fleet or one node with its rack")
        return tuple(_virtual(one, state_dir) for one in _read_fleet(more["fleet"]))
    return (_this_node(more, state_dir),)


def _read_fleet(path: Path) -> Sequence[FleetNode]:
    try:
        return read_json(tuple[FleetNode, ...], path.read_bytes(), 64 * 1024 * 1024)
    except Unreadable as problem:
        raise BadSetting("fleet", f"{path}: {problem}") from problem


def write_fleet(path: Path, nodes: Sequence[FleetNode]) -> None:
    """The file that `--fleet` reads."""
    rows = [{name: getattr(node, name) for name in node.__slots__} for node in nodes]
    path.write_text(json.dumps(rows), encoding="utf-8")


def _virtual(one: FleetNode, state_dir: Path) -> NodeConfig:
    root = state_dir / "nodes" / _name("node", one.node)
    return NodeConfig(
        node=NodeId(one.node),
        rack=RackId(_name("rack", one.rack)),
        hardware=Hardware(
            serial=f"virtual-{one.node}",
            slot=one.node,
            gpus=one.gpus,
            gpu_model=one.gpu_model,
            driver=one.driver,
            cores=one.cores,
            memory_gb=one.memory_gb,
            address=one.address,
        ),
        root=root,
        kernel_log=root / "kernel.log",
        gpu_pci=tuple(f"{gpu:04d}:01:00" for gpu in range(one.gpus)),
    )


def _this_node(more: dict[str, Any], state_dir: Path) -> NodeConfig:
    name = _name("node", more["node"] or socket.gethostname().partition(".")[0])
    if more["rack"] is None:
        raise BadSetting("rack", "give the rack that this node is in")
    reading = read_node()
    gpus = more["gpus"] if more["gpus"] is not None else _count(reading)
    return NodeConfig(
        node=NodeId(name),
        rack=RackId(_name("rack", more["rack"])),
        hardware=Hardware(
            serial=_dmi("product_serial") or name,
            slot=_dmi("chassis_serial"),
            gpus=gpus,
            gpu_model=_model(reading),
            driver=reading.driver if reading is not None else "",
            cores=len(os.sched_getaffinity(0)),
            memory_gb=_memory_gb(MEMINFO.read_text(encoding="ascii")),
            address=more["address"] or socket.gethostname(),
        ),
        root=state_dir / "nodes" / name,
        kernel_log=more["kernel_log"] or (KMSG if KMSG.exists() else None),
        gpu_pci=tuple(gpu.pci for gpu in reading.gpus) if reading is not None else (),
        driver=reading is not None,
    )


def _memory_gb(meminfo: str) -> float:
    """Host memory in whole GB (1e9 bytes), so that alike nodes say alike; 0 if it is not told."""
    found = re.search(r"^MemTotal:\s+([0-9]+) kB$", meminfo, re.MULTILINE)
    return float(int(found[1]) * 1024 // 1_000_000_000) if found else 0.0


def _model(reading: NodeReading | None) -> str:
    """`GB200` of the driver's `NVIDIA GB200`, as job files say it."""
    if reading is None or not reading.gpus:
        return ""
    return reading.gpus[0].model.removeprefix("NVIDIA ")


def _count(reading: NodeReading | None) -> int:
    if reading is None:
        raise BadSetting("gpus", "no NVIDIA driver answers: say how many GPUs the node has")
    return reading.count


def _name(field: str, value: str) -> str:
    try:
        return check_name(field, value)
    except InvalidId as error:
        raise BadSetting(field, str(error)) from error


def _dmi(name: str) -> str:
    """What the firmware says; only root may read serial numbers."""
    try:
        return (DMI / name).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
