"""What the driver's answers mean, and that each is told once."""

from typing import Any

import pytest

from rackwright.agent.gpus import Finding, GpuWatch, findings
from rackwright.agent.nvml import MAX_LINKS, GpuReading, NodeReading
from rackwright.wire.signals import SignalKind


def gpu(index: int, **more: Any) -> GpuReading:
    settings: dict[str, Any] = {
        "index": index,
        "uuid": f"u{index}",
        "serial": "",
        "pci": f"000{index}:01:00",
        "model": "GB200",
        "links_active": MAX_LINKS,
        "remap_pending": False,
        "remap_failed": False,
        "processes": (),
        **more,
    }
    return GpuReading(**settings)


def node(*gpus: GpuReading, count: int | None = None) -> NodeReading:
    return NodeReading(driver="1", count=len(gpus) if count is None else count, gpus=gpus)


def kinds(found: list[Finding]) -> list[tuple[SignalKind, int | None, float]]:
    return [(one.kind, one.gpu, one.value) for one in found]


def test_a_whole_node_has_nothing_to_tell() -> None:
    assert findings(node(gpu(0), gpu(1)), 2) == []


@pytest.mark.parametrize("count", [1, 2])
def test_a_gpu_that_does_not_answer_is_missing_counted_or_not(count: int) -> None:
    found = findings(node(gpu(0), count=count), 2)
    assert kinds(found) == [(SignalKind.GPU_COUNT, None, 1.0)]


def test_links_that_are_down_are_told_by_gpu() -> None:
    found = findings(node(gpu(0), gpu(1, links_active=17)), 2)
    assert kinds(found) == [(SignalKind.NVLINK_DOWN, 1, 17.0)]


def test_a_gpu_without_links_or_silent_about_them_is_not_blamed() -> None:
    assert findings(node(gpu(0, links_active=None, remap_failed=None)), 1) == []


def test_a_failed_remap_is_told_and_a_pending_one_is_not() -> None:
    found = findings(node(gpu(0, remap_pending=True), gpu(1, remap_failed=True)), 2)
    assert kinds(found) == [(SignalKind.ROW_REMAP, 1, 1.0)]


async def test_each_state_is_told_once_and_again_when_it_comes_back() -> None:
    good, bad = node(gpu(0)), node(gpu(0, links_active=3))
    readings = iter([bad, bad, good, bad])
    told: list[Finding] = []
    watch = GpuWatch(1, told.append, lambda: next(readings))
    for _ in range(4):
        assert await watch.look()
    assert kinds(told) == [(SignalKind.NVLINK_DOWN, 0, 3.0)] * 2


async def test_without_a_driver_it_ends_and_says_nothing() -> None:
    told: list[Finding] = []
    await GpuWatch(4, told.append, lambda: None).run()
    assert told == []
