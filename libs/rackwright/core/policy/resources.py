"""Cores and memory: which nodes have enough of them for a job beside the GPUs it asks for.

They follow the GPUs: who has k of a node's g GPUs has k/g of its cores and memory, who has the
whole node has all. So the account of GPUs is that of both, and no share is given out twice. Work
without GPUs holds the share of as few as give it what it asks for.
"""

from rackwright.core.policy.refusing import Numbers, wrong
from rackwright.core.topology import Capacity, Topology
from rackwright.wire.jobs import JobSpec
from rackwright.wire.reasons import Reason


def share(capacity: Capacity, gpus: int, per_node: int) -> Capacity:
    """Cores and memory of so many of a node's GPUs; `gpus` 0: of the whole node. Cores may be parts
    of one: agents hold workers to the same figures."""
    if not gpus or gpus >= per_node:
        return capacity
    return Capacity(capacity.cores * gpus / per_node, capacity.memory_gb * gpus / per_node)


def suffices(has: Capacity, spec: JobSpec) -> bool:
    """Is this as much as the job asks for on a node? What an agent did not say is not enough."""
    return has.cores >= (spec.cpus or 0) and has.memory_gb >= (spec.memory_gb or 0)


def held_gpus(spec: JobSpec, topology: Topology) -> int:
    """GPUs whose share work without GPUs holds: the fewest that suffice on some node, at least one.

    All of a node's where nothing suffices: then no node has enough (see `refused`).
    """
    per_node = topology.gpus_per_node
    found = (_held(one, spec, per_node) for one in topology.capacities)
    return min(found, default=1)


def _held(capacity: Capacity, spec: JobSpec, per_node: int) -> int:
    for gpus in range(1, per_node):
        if suffices(share(capacity, gpus, per_node), spec):
            return gpus
    return per_node


def too_small(spec: JobSpec, topology: Topology, gpus: int) -> dict[int, int]:
    """Nodes, by rack, whose share of so many GPUs (0: all there is) is too little for the job."""
    if spec.cpus is None and spec.memory_gb is None:
        return {}
    found: dict[int, int] = {}
    for capacity, racks in topology.capacities.items():
        if not suffices(share(capacity, gpus, topology.gpus_per_node), spec):
            for number, nodes in racks.items():
                found[number] = found.get(number, 0) | nodes
    return found


def refused(spec: JobSpec, topology: Topology, gpus: int) -> Reason | None:
    """The field that asks for more than any node's share, None if some node has enough or no node
    has told what it has."""
    shares = [share(one, gpus, topology.gpus_per_node) for one in topology.capacities]
    if not shares or any(suffices(one, spec) for one in shares):
        return None
    cores = max(one.cores for one in shares)
    memory = max(one.memory_gb for one in shares)
    of = f"{gpus} of {topology.gpus_per_node} GPUs" if gpus else "a whole node"
    more = " or fewer, or more GPUs" if gpus and spec.gpus else " or fewer"
    if spec.cpus is not None and spec.cpus > cores:
        return wrong(
            "cpus", spec.cpus, f"is more than the {cores:g} cores of {of}", f"{cores:g}{more}"
        )
    if spec.memory_gb is not None and spec.memory_gb > memory:
        why = f"is more than the {memory:g} GB of {of}"
        return wrong("memory_gb", spec.memory_gb, why, f"{memory:g}{more}")
    why = f"GB are on no node that has {spec.cpus:g} cores for {of} too"
    return wrong("memory_gb", spec.memory_gb or 0, why, "less of one of them")


def asked(spec: JobSpec, topology: Topology, gpus: int) -> Numbers:
    """For a reason: what is asked for beside GPUs, and how many nodes have too little of it."""
    numbers: Numbers = {}
    if spec.cpus is not None:
        numbers["cpus"] = spec.cpus
    if spec.memory_gb is not None:
        numbers["memory_gb"] = spec.memory_gb
    if numbers:
        small = too_small(spec, topology, gpus)
        numbers["nodes_too_small"] = sum(nodes.bit_count() for nodes in small.values())
    return numbers
