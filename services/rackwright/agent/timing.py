"""The clocks, alarms and chance of a node's agent, so that a simulator can bring its own."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Protocol

from rackwright.agent.lease import now_ns
from rackwright.wire.ids import SessionId


class Alarm(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """It does not come."""
        ...


class Timing(Protocol):
    """See the module."""

    def now_ns(self) -> int:
        """CLOCK_BOOTTIME in nanoseconds."""
        ...

    def wall(self) -> float:
        """Unix time in seconds."""
        ...

    def later(self, delay_s: float, call: Callable[..., object], *args: object) -> Alarm:
        """Call after so many seconds."""
        ...

    def session(self) -> SessionId:
        """A session that was never before."""
        ...


class LiveTiming:
    """The host's clocks and the running event loop."""

    def now_ns(self) -> int:
        """See Timing."""
        return now_ns()

    def wall(self) -> float:
        """See Timing."""
        return time.time()

    def later(self, delay_s: float, call: Callable[..., object], *args: object) -> Alarm:
        """See Timing."""
        return asyncio.get_running_loop().call_later(delay_s, call, *args)

    def session(self) -> SessionId:
        """See Timing."""
        return SessionId(f"s{secrets.token_hex(6)}")


LIVE = LiveTiming()
