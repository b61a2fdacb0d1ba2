"""How fast a placed job runs: a model of the traffic inside tensor- and expert-parallel groups.

A GPU moves 900 GB/s each way inside a rack and 50 GB/s across (the vendor's and the origin
article's figures). A job spends a share of its time in traffic within groups of 16 nodes of
consecutive ranks; the part of that traffic whose two ends are in different racks takes 18 times
as long. The slowest group sets the pace, as in synchronous work.

The share is calibrated to one published pair: an iteration of a 512-GPU training of 1.59 s
scattered and 1.39 s on 8 racks. It is a model of one job with two known points, no measurement of
others.
"""

from collections import Counter
from collections.abc import Sequence

NVLINK_GB_S = 900.0
NETWORK_GB_S = 50.0
SCATTERED_S = 1.59
BY_RACK_S = 1.39
GROUP_NODES = 16

SLOWER = NVLINK_GB_S / NETWORK_GB_S - 1
# Scattered, no two nodes of a group share a rack: all of its traffic goes across.
COMMUNICATION = (SCATTERED_S / BY_RACK_S - 1) / SLOWER


def across(racks: Sequence[int]) -> float:
    """Of the pairs of nodes of one group, in these racks, the share that is in two racks."""
    nodes = len(racks)
    if nodes < 2:
        return 0.0
    together = sum(count * (count - 1) for count in Counter(racks).values())
    return 1.0 - together / (nodes * (nodes - 1))


def speed(
    racks: Sequence[int], communication: float = COMMUNICATION, group_nodes: int = GROUP_NODES
) -> float:
    """Speed of a job whose ranks are in these racks; 1: every group in one rack."""
    groups = (racks[at : at + group_nodes] for at in range(0, len(racks), group_nodes))
    worst = max((across(group) for group in groups), default=0.0)
    return 1.0 / (1.0 + communication * SLOWER * worst)
