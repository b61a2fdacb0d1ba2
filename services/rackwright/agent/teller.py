"""Tells the Xids of one node's log as they come, within its limits."""

import asyncio
from collections.abc import Callable

from rackwright.agent.limits import XidLimit, XidSignal

OnXid = Callable[[XidSignal], None]


class Teller:
    """Limits what one node's log says, and tells it; repeats follow at the end of the window."""

    def __init__(self, on_xid: OnXid) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_xid = on_xid
        self._limit = XidLimit()
        self._flush: asyncio.TimerHandle | None = None

    @property
    def lost(self) -> int:
        """Lines of kinds beyond the limit."""
        return self._limit.lost

    def offer(self, raw: bytes, source: str) -> None:
        """Take a line that holds the driver's mark."""
        signal = self._limit.offer(raw, source, self._loop.time())
        if self._flush is None and self._limit.ends_at:
            self._flush = self._loop.call_at(self._limit.ends_at, self.flush)
        if signal is not None:
            self._on_xid(signal)

    def flush(self) -> None:
        """Tell the repeats counted so far."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        for signal in self._limit.flush():
            self._on_xid(signal)
