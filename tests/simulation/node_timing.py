"""The clocks of a simulated node."""

from __future__ import annotations

from collections.abc import Callable

from rackwright.agent.pretend import NS
from rackwright.sim.engine import Engine, Timer
from rackwright.wire.ids import NodeId, SessionId


class NodeTiming:
    """The clocks of one node: CLOCK_BOOTTIME begins anew at a reboot and runs at `rate`."""

    def __init__(self, engine: Engine, node: NodeId, rate: float) -> None:
        self._engine = engine
        self._node = node
        self._rate = rate
        self._booted = engine.now - 100.0
        self._sessions = 0

    def reboot(self) -> None:
        """The clock begins anew."""
        self._booted = self._engine.now - 1.0

    def now_ns(self) -> int:
        """See agent.timing."""
        return int((self._engine.now - self._booted) * self._rate * NS)

    def wall(self) -> float:
        """See agent.timing."""
        return self._engine.now

    def later(self, delay_s: float, call: Callable[..., object], *args: object) -> Timer:
        """See agent.timing."""
        return self._engine.later(delay_s / self._rate, call, *args)

    def session(self) -> SessionId:
        """See agent.timing."""
        self._sessions += 1
        return SessionId(f"s-{self._node}-{self._sessions}")
