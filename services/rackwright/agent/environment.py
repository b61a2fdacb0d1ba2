"""The environment of a worker: who it is, who its peers are, which files to read and write.

Documented for users in the README; names of torchrun and SkyPilot are given where they mean the
same. Values are those of the start: what changes later is in the membership file.
"""

import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackwright.agent.membership import Member
from rackwright.agent.records import WorkerFiles

OURS = "RACKWRIGHT_"
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR")
FIRST_PORT, PORTS = 20_000, 12_000  # below the usual ephemeral range, which begins at 32768
LONGEST_VALUE = 100_000  # bytes; Linux refuses a string over 128 KiB at exec


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and as whom one worker runs. `whole_node`: it has all GPUs of its node.

    `cpus` (cores) and `memory_gb` are what it may use of the node; 0 where nobody knows.
    """

    cell: str
    job: str
    rank: int
    node: str
    rack: str
    slice: int
    slice_rank: int
    group: str
    replica: int
    membership: int
    incarnation: int
    gpus: tuple[int, ...]
    cpus: float
    memory_gb: float
    whole_node: bool
    members: tuple[Member, ...]
    master_port: int

    @property
    def worker_id(self) -> str:
        """`<job>/<rank>/<incarnation>`."""
        return f"{self.job}/{self.rank}/{self.incarnation}"


def master_port(job: str) -> int:
    """A port for rendezvous that every rank of a job derives alike, replacements too."""
    return FIRST_PORT + zlib.crc32(job.encode()) % PORTS


def _ours(place: Place, files: WorkerFiles) -> dict[str, str]:
    values = {
        "CELL": place.cell,
        "JOB": place.job,
        "RANK": place.rank,
        "NODE": place.node,
        "RACK": place.rack,
        "SLICE": place.slice,
        "SLICE_RANK": place.slice_rank,
        "GROUP": place.group,
        "REPLICA": place.replica,
        "MEMBERSHIP": place.membership,
        "INCARNATION": place.incarnation,
        "WORKER": place.worker_id,
        "GPUS": ",".join(map(str, place.gpus)),
        "CPUS": f"{place.cpus:g}",
        "MEMORY_GB": f"{place.memory_gb:g}",
        "MEMBERSHIP_FILE": files.membership,
        "NOTICE_FILE": files.notice,
        "REPORT_FILE": files.report,
        "CHECKPOINT_FILE": files.checkpoint,
    }
    return {OURS + name: str(value) for name, value in values.items()}


def _peers(place: Place) -> dict[str, str]:
    """What torchrun and SkyPilot users expect: a node here is one of theirs, a rank a node."""
    members = sorted(place.members, key=lambda member: member.rank)
    node_count, local = len(members), max(1, len(place.gpus))
    # Its place among the ranks there are: numbers are missing while a job goes on without a slice.
    node_rank = sum(member.rank < place.rank for member in members)
    values = {
        "MASTER_ADDR": members[0].address,
        "MASTER_PORT": str(place.master_port),
        "NODE_RANK": str(node_rank),
        "NNODES": str(node_count),
        "NPROC_PER_NODE": str(local),
        "WORLD_SIZE": str(node_count * local),
        "SKYPILOT_NODE_RANK": str(node_rank),
        "SKYPILOT_NUM_NODES": str(node_count),
        "SKYPILOT_NUM_GPUS_PER_NODE": str(len(place.gpus)),
        "SKYPILOT_NODE_IPS": "\n".join(member.address for member in members),
    }
    # Of thousands of nodes the list is too long for an environment; the membership file has it.
    return {name: value for name, value in values.items() if len(value) <= LONGEST_VALUE}


def build(
    place: Place,
    files: WorkerFiles,
    user: Mapping[str, str],
    *,
    inherited: Iterable[str] = INHERITED,
) -> dict[str, str]:
    """The whole environment. Only the named variables come from the agent's own.

    The user may set anything but RACKWRIGHT_*, and on a shared node not which GPUs are visible.
    """
    env = {name: os.environ[name] for name in inherited if name in os.environ}
    env |= _peers(place)
    env |= {name: value for name, value in user.items() if not name.startswith(OURS)}
    if not place.whole_node:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, place.gpus))
    return env | _ours(place, files)
