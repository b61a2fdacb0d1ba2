"""Watches the GPUs through the driver: what is missing or broken becomes a fault, once.

The kernel log tells of events; this tells of states that no line may have announced: a GPU that is
gone, links that are down, rows that could not be remapped.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from rackwright.agent.nvml import MAX_LINKS, NodeReading, read_node
from rackwright.wire.signals import SignalKind

LOOK_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong; `gpu` None: with the node as a whole. `value` is what was read."""

    kind: SignalKind
    gpu: int | None
    value: float
    text: str


def findings(reading: NodeReading, gpus: int) -> list[Finding]:
    """All that is wrong on a node that should have so many GPUs. Pure.

    A GPU that has no NVLink at all, or does not tell, is not blamed for links.
    """
    found: list[Finding] = []
    answering = len(reading.gpus)
    if answering < gpus:
        text = f"{answering} of {gpus} GPUs answer, the driver counts {reading.count}"
        found.append(
            Finding(kind=SignalKind.GPU_COUNT, gpu=None, value=float(answering), text=text)
        )
    for gpu in reading.gpus:
        links = gpu.links_active
        if links is not None and links < MAX_LINKS:
            text = f"GPU {gpu.index}: {links} of {MAX_LINKS} NVLinks are active"
            found.append(
                Finding(kind=SignalKind.NVLINK_DOWN, gpu=gpu.index, value=float(links), text=text)
            )
        if gpu.remap_failed:
            text = f"GPU {gpu.index}: a row could not be remapped"
            found.append(Finding(kind=SignalKind.ROW_REMAP, gpu=gpu.index, value=1.0, text=text))
    return found


class GpuWatch:
    """Asks the driver now and then and tells what is newly wrong; nothing without a driver.

    `seen` hears of every reading.
    """

    def __init__(
        self,
        gpus: int,
        tell: Callable[[Finding], None],
        read: Callable[[], NodeReading | None] = read_node,
        seen: Callable[[NodeReading], None] = lambda _: None,
    ) -> None:
        self._seen = seen
        self._gpus = gpus
        self._tell = tell
        self._read = read
        self._known: set[tuple[SignalKind, int | None, float]] = set()

    async def run(self) -> None:
        """Look until cancelled; ends at once where there is no driver."""
        while True:
            if not await self.look():
                return
            await asyncio.sleep(LOOK_S)

    async def look(self) -> bool:
        """Look once; False where there is no driver. What has become good may be told again."""
        reading = await asyncio.to_thread(self._read)
        if reading is None:
            return False
        self._seen(reading)
        found = {(one.kind, one.gpu, one.value): one for one in findings(reading, self._gpus)}
        for key, one in found.items():
            if key not in self._known:
                self._tell(one)
        self._known = set(found)
        return True
