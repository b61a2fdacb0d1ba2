"""Faults on demand, for a fleet of virtual nodes: only where the operator allowed it.

An Xid is written into the node's kernel log, where it is found as a real one is; silence stops
heartbeats and deafens the node to echoes, as a cut cable would.
"""

import asyncio
import json
import os
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rackwright.agent.fleet import AgentProcess, NodeConfig
from rackwright.agent.node import NodeAgent
from rackwright.agent.xid import parse_xid
from rackwright.bus.errors import RequestFailed
from rackwright.bus.opening import patiently
from rackwright.bus.ports import Bus, Message, Responder
from rackwright.wire.ids import CellName, NodeId
from rackwright.wire.subjects import Subjects


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A node that faults may be injected into, and its kernel log."""

    agent: NodeAgent
    kernel_log: Path | None


def targets(process: AgentProcess, configs: Iterable[NodeConfig]) -> dict[NodeId, Target]:
    """All nodes of a process."""
    return {
        config.node: Target(agent=process.nodes[config.node], kernel_log=config.kernel_log)
        for config in configs
    }


class Injector:
    """Answers injection requests for the nodes of this process."""

    def __init__(self, bus: Bus, targets: dict[NodeId, Target]) -> None:
        self._bus = bus
        self._targets = targets
        self._subjects = Subjects(CellName(bus.cell))
        self._timers: set[asyncio.TimerHandle] = set()

    async def run(self) -> None:
        """Answer until cancelled; node after node, so that many do not all ask the bus at once."""
        async with AsyncExitStack() as responders:
            for node in self._targets:
                responders.push_async_callback((await self._serve(node)).aclose)
            await asyncio.get_running_loop().create_future()

    async def _serve(self, node: NodeId) -> Responder:
        async def answer(message: Message) -> bytes:
            return json.dumps(self._inject(self._targets[node], message.data)).encode()

        subject = self._subjects.query(f"inject.{node}")
        return await patiently(partial(self._bus.core.respond, subject, answer))

    def _inject(self, target: Target, data: bytes) -> dict[str, Any]:
        where = f"inject.{target.agent.who.node}"
        try:
            asked = json.loads(data)
            if not isinstance(asked, dict):
                raise TypeError("must be an object")
            if "line" in asked:
                return _write(target, str(asked["line"]))
            if "silent_s" in asked:
                return self._silence(target, float(asked["silent_s"]))
        except (ValueError, TypeError) as error:
            raise RequestFailed(where, 400, str(error)) from error
        raise RequestFailed(where, 400, "give `line` (of a kernel log) or `silent_s` (seconds)")

    def _silence(self, target: Target, seconds: float) -> dict[str, Any]:
        if not 0 < seconds <= 86_400:
            raise ValueError("silent_s must be above 0 and at most 86400")
        target.agent.silent = True
        loop = asyncio.get_running_loop()
        self._timers.add(loop.call_later(seconds, setattr, target.agent, "silent", False))
        return {"node": target.agent.who.node, "silent_s": seconds}


def _write(target: Target, line: str) -> dict[str, Any]:
    if target.kernel_log is None:
        raise ValueError("this node follows no kernel log")
    if "\n" in line or parse_xid(line.encode()) is None:
        raise ValueError(
            "line must be one line as the driver writes it: NVRM: Xid (PCI:...): N, ..."
        )
    with open(target.kernel_log, "ab") as file:
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return {"node": target.agent.who.node, "line": line}
