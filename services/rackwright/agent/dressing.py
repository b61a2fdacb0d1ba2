"""What a worker is started with, made from its line and its job's value."""

import signal
from dataclasses import replace

from rackwright.agent.environment import Place, build, master_port
from rackwright.agent.membership import Member, Membership
from rackwright.agent.records import OnLostLease, WorkerFiles, WorkerSpec
from rackwright.agent.said import Who
from rackwright.core.policy.resources import share
from rackwright.core.topology import Capacity
from rackwright.wire.ids import CellName, parse_worker
from rackwright.wire.jobs import JobSpec
from rackwright.wire.nodes import Hardware
from rackwright.wire.values import AssignmentLine, JobValue, SliceMembers

IDLE_S = 3600


def worker_spec(
    cell: CellName,
    who: Who,
    hardware: Hardware,
    line: AssignmentLine,
    job: JobValue,
    files: WorkerFiles | None,
) -> WorkerSpec:
    """All a worker needs. `files` None: it is pretended and gets only its owner's environment.

    A job without a command is a pretence too: where real processes are asked for, one that sleeps.
    """
    spec = job.spec
    gpus = gpu_indices(line.gpus, hardware.gpus)
    cpus, memory_gb = allowed(line.gpus, hardware, spec)
    env = dict(spec.env)
    if files is not None:
        place = _place(cell, who, line, job, () if spec.gpus == 0 else gpus)
        env = build(replace(place, cpus=cpus, memory_gb=memory_gb), files, spec.env)
    idle = "" if spec.command else f"exec sleep {spec.pretend_s or IDLE_S}"
    return WorkerSpec(
        worker_id=line.worker,
        command=spec.command,
        setup=spec.setup,
        run=spec.run or idle,
        env=env,
        gpus=gpus,
        on_lost_lease=OnLostLease(spec.on_lost_lease.value),
        grace_s=spec.grace_s,
        cpus=cpus if line.gpus else 0.0,
        memory_gb=memory_gb if line.gpus else 0.0,
    )


def allowed(gpus: int, hardware: Hardware, spec: JobSpec) -> tuple[float, float]:
    """Cores and GB of memory a worker may use: its GPUs' share of the node, or what it asks for of
    that; of a whole node (`gpus` 0) all."""
    if not gpus or not hardware.gpus:
        return float(hardware.cores), hardware.memory_gb
    node = Capacity(hardware.cores, hardware.memory_gb)
    cpus, memory_gb = share(node, gpus.bit_count(), hardware.gpus)
    return min(cpus, spec.cpus or cpus), min(memory_gb, spec.memory_gb or memory_gb)


def _place(
    cell: CellName, who: Who, line: AssignmentLine, job: JobValue, gpus: tuple[int, ...]
) -> Place:
    part = slice_of(job, line.rank)
    return Place(
        cell=cell,
        job=line.job,
        rank=line.rank,
        node=who.node,
        rack=who.rack,
        slice=part.index,
        slice_rank=line.rank - part.first_rank,
        group=part.group,
        replica=part.replica,
        membership=job.membership,
        incarnation=parse_worker(line.worker)[2],
        gpus=gpus,
        cpus=0.0,
        memory_gb=0.0,
        whole_node=line.gpus == 0,
        members=members(job),
        master_port=master_port(line.job),
    )


def slice_of(job: JobValue, rank: int) -> SliceMembers:
    """The slice that holds `rank`. Raises StopIteration for a rank the job does not have."""
    return next(part for part in reversed(job.slices) if part.first_rank <= rank)


def gpu_indices(mask: int, count: int) -> tuple[int, ...]:
    """GPUs of a mask; 0 means all."""
    return tuple(gpu for gpu in range(count) if not mask or mask >> gpu & 1)


def members(job: JobValue) -> tuple[Member, ...]:
    """Every rank with the worker it is now."""
    return tuple(
        Member(
            rank=part.first_rank + turn,
            node=node,
            rack=part.rack,
            slice=part.index,
            worker=f"{job.job}/{part.first_rank + turn}/{part.incarnations[turn]}",
            incarnation=part.incarnations[turn],
            address=part.addresses[turn] if part.addresses else node,
        )
        for part in job.slices
        for turn, node in enumerate(part.nodes)
    )


def membership_of(job: JobValue) -> Membership:
    """What the membership file of each of its workers says."""
    return Membership(
        job=job.job,
        membership=job.membership,
        members=members(job),
        gone=job.gone,
        master_addr=job.master,
        master_port=master_port(job.job),
    )


def signal_number(name: str) -> int:
    """`SIGUSR1` or `USR1` as a number. Raises KeyError for a name that is none."""
    return int(signal.Signals[name if name.startswith("SIG") else f"SIG{name}"])
