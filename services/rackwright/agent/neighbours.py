"""Asks the witnesses of the nodes of this process, and answers those who ask its nodes.

Names are turned into addresses while the bus is there: during an outage nobody may know them.
"""

import asyncio
import secrets
from collections.abc import Mapping

from rackwright.agent.node import NodeAgent
from rackwright.agent.timing import LIVE, Timing
from rackwright.host.datagrams import Address, Datagrams
from rackwright.wire.ids import CellName, NodeId
from rackwright.wire.neighbours import Answer, Question
from rackwright.wire.values import Neighbour

RESOLVE_EVERY_S = 300.0


class Neighbours:
    """Of the nodes `nodes`, which may still be empty. Without a key there are none."""

    def __init__(
        self,
        cell: CellName,
        nodes: Mapping[NodeId, NodeAgent],
        *,
        key: bytes | None,
        timing: Timing = LIVE,
    ) -> None:
        self._cell = cell
        self._nodes = nodes
        self._timing = timing
        self._port = Datagrams(key, self._told) if key is not None else None
        self._found: dict[str, str] = {}
        self._unknown: set[str] = set()
        self._changed = asyncio.Event()

    @property
    def port(self) -> int:
        """Where this process is asked; 0: nowhere."""
        return self._port.port if self._port is not None else 0

    async def open(self, at: Address) -> None:
        """Listen. Raises OSError."""
        if self._port is not None:
            await self._port.open(at)

    def close(self) -> None:
        """Stop listening."""
        if self._port is not None:
            self._port.close()

    def know(self, neighbours: tuple[Neighbour, ...]) -> None:
        """These may be asked one day."""
        new = {one.host for one in neighbours if one.port} - self._found.keys() - self._unknown
        if new and self._port is not None:
            self._unknown |= new
            self._changed.set()

    async def run(self) -> None:
        """Look up new names at once and all of them now and then."""
        while self._port is not None:
            self._changed.clear()
            hosts = self._unknown or set(self._found)
            for host in sorted(hosts):
                address = await self._port.resolve(host)
                if address is not None:
                    self._found[host] = address
                    self._unknown.discard(host)
            try:
                async with asyncio.timeout(RESOLVE_EVERY_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def ask_for(self, node: NodeAgent) -> None:
        """Ask its witnesses, if it has no bus."""
        now = self._timing.now_ns()
        if self._port is None or not node.asks(now):
            return
        for one in node.neighbours:
            host = self._found.get(one.host)
            if host is None or not one.port:
                continue
            nonce = secrets.token_hex(16)
            node.alone.ask(nonce, one.node, now)
            question = Question(cell=self._cell, node=node.who.node, to=one.node, nonce=nonce)
            self._port.send(question, (host, one.port))

    def _told(self, message: Question | Answer, address: Address) -> None:
        node = self._nodes.get(message.to)
        if node is None or node.silent or message.cell != self._cell or self._port is None:
            return
        if isinstance(message, Answer):
            node.answered(message.nonce, message.node, away=message.away)
            return
        answer = Answer(
            cell=self._cell,
            node=message.to,
            to=message.node,
            nonce=message.nonce,
            away=node.hold.away(self._timing.now_ns()),
        )
        self._port.send(answer, address)
