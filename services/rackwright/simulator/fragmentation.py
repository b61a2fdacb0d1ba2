"""Slurm's fragmentation metric of block topologies, so that results can be compared with it."""

from collections.abc import Sequence


def block_fragmentation(unavailable: Sequence[bool], block_sizes: Sequence[int]) -> int:
    """Unavailable nodes, and the size of every aligned block of each size that holds one.

    Nodes are in the order of their blocks. A block size beyond the cluster adds nothing. The five
    values of Slurm's own test (SchedMD/slurm, check/topology/test_topology.c) come out.
    """
    nodes = len(unavailable)
    total = sum(unavailable)
    for size in block_sizes:
        if size > nodes:
            continue
        total += size * sum(any(unavailable[at : at + size]) for at in range(0, nodes, size))
    return total
