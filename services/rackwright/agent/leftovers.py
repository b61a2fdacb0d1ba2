"""Waits until the memory of GPUs is free after work has left them, as their driver tells it.

Processes may be gone and their memory not: the driver frees it a little later, or never.
"""

import asyncio
from collections.abc import Callable, Iterable

from rackwright.agent.nvml import NodeReading, read_node

LEFT_GB = 2.0  # what a driver keeps on an idle GPU is less, what work leaves behind is more
LOOK_S = 1.0  # NVML tells no event when memory comes free
LIMIT_S = 120.0  # policy page, 1.17: so long without a clean node is a fault of it


class GpuMemory:
    """Asks `read`, which may take a second, in a thread; every `look_s`, for at most `limit_s`."""

    def __init__(
        self,
        read: Callable[[], NodeReading | None] = read_node,
        *,
        look_s: float = LOOK_S,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._read = read
        self._look_s = look_s
        self._limit_s = limit_s

    async def left(self, gpus: Iterable[int]) -> dict[int, float]:
        """GB in use of those of these GPUs that are not free. One that does not tell is free."""
        reading = await asyncio.to_thread(self._read)
        mine = set(gpus)
        return {
            one.index: one.memory_used_gb
            for one in (reading.gpus if reading is not None else ())
            if one.index in mine
            and one.memory_used_gb is not None
            and one.memory_used_gb >= LEFT_GB
        }

    async def freed(self, gpus: tuple[int, ...]) -> dict[int, float]:
        """Wait until they are free; what is still in use when the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._limit_s
        while True:
            found = await self.left(gpus)
            if not found or loop.time() >= until:
                return found
            await asyncio.sleep(self._look_s)
