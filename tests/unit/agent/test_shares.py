"""What a worker may use of a shared node, and whether anything holds it to that."""

from pathlib import Path
from typing import Any

import pytest

from rackwright.agent.cgroups import root_for, turn_on_limits
from rackwright.agent.config import _memory_gb
from rackwright.agent.dressing import allowed
from rackwright.core.policy.resources import share
from rackwright.core.topology import Capacity
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.nodes import Hardware

NODE = Hardware(serial="s", gpus=4, cores=144, memory_gb=960.0)


@pytest.mark.parametrize(
    ("gpus", "spec", "expected"),
    [
        (0, {"nodes": 1}, (144.0, 960.0)),
        (0, {"nodes": 1, "cpus": 4.0}, (144.0, 960.0)),
        (0b0001, {"gpus": 1}, (36.0, 240.0)),
        (0b1010, {"gpus": 2, "cpus": 10.5}, (10.5, 480.0)),
        (0b0001, {"gpus": 0, "cpus": 4.0, "memory_gb": 16.0}, (4.0, 16.0)),
        (0b0001, {"gpus": 1, "cpus": 100.0}, (36.0, 240.0)),
    ],
)
def test_the_share_of_its_gpus_or_less(
    gpus: int, spec: dict[str, Any], expected: tuple[float, float]
) -> None:
    assert allowed(gpus, NODE, JobSpec(name=JobId("j"), **spec)) == expected


def test_a_node_that_does_not_know_its_cores_limits_nobody() -> None:
    silent = Hardware(serial="s", gpus=4)
    assert allowed(1, silent, JobSpec(name=JobId("j"), gpus=1, cpus=8.0)) == (0.0, 0.0)


def test_memory_is_told_in_whole_gb_so_that_alike_nodes_say_alike() -> None:
    assert _memory_gb("MemFree: 1 kB\nMemTotal:       16384000 kB\nSwap: 2 kB\n") == 16.0
    assert _memory_gb("nothing of the kind") == 0.0


def cgroup(path: Path, *, controls: str | None = None) -> Path:
    path.mkdir(parents=True)
    if controls is not None:
        (path / "cgroup.subtree_control").write_text(controls)
    return path


def test_limits_are_on_or_they_are_not(tmp_path: Path) -> None:
    assert turn_on_limits(cgroup(tmp_path / "on", controls="cpuset cpu memory pids\n"))
    assert not turn_on_limits(cgroup(tmp_path / "none"))
    assert not turn_on_limits(tmp_path / "nowhere")


def test_no_cgroup_is_made_where_a_directory_is_none(tmp_path: Path) -> None:
    own = cgroup(tmp_path / "unit" / "agent")
    assert root_for(own) is None
    assert list(own.iterdir()) == []
    assert [one.name for one in own.parent.iterdir()] == ["agent"]


@pytest.mark.parametrize("gpus", [1, 2, 3])
def test_it_is_the_share_that_placement_counts_with(gpus: int) -> None:
    """On a node whose cores the GPUs do not divide."""
    node = Hardware(serial="s", gpus=4, cores=10, memory_gb=7.0)
    counted = share(Capacity(10, 7.0), gpus, 4)
    assert allowed((1 << gpus) - 1, node, JobSpec(name=JobId("j"), gpus=gpus)) == counted
