"""The UDP port on which the agents of a cell ask each other whether the bus is away.

Only what carries the cell's key is looked at, and no more of it than so many messages a second:
an answer is about as long as its question, so nobody can make the port shout at a third.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TypeAlias

import structlog

from rackwright.wire.neighbours import Answer, Question, seal, unseal

Address: TypeAlias = tuple[str, int]
Told = Callable[[Question | Answer, Address], None]
MOST_A_SECOND = 2_000  # a process may host hundreds of nodes; a node asks five, every heartbeat

log = structlog.get_logger()


class Datagrams(asyncio.DatagramProtocol):
    """One open port. `told` is called with each message that was sealed with `key`."""

    def __init__(self, key: bytes, told: Told) -> None:
        self._key = key
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.DatagramTransport | None = None
        self._second = 0
        self._taken = 0
        self.dropped = 0
        self.port = 0

    async def open(self, at: Address) -> None:
        """Listen there; port 0: any free one. Raises OSError."""
        transport, _ = await self._loop.create_datagram_endpoint(
            lambda: self, local_addr=at, family=socket.AF_INET
        )
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]
        log.info("neighbours.listening", port=self.port)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """See asyncio."""
        second = int(self._loop.time())
        if second != self._second:
            self._second, self._taken = second, 0
        self._taken += 1
        message = unseal(self._key, data) if self._taken <= MOST_A_SECOND else None
        if message is None:
            self.dropped += 1
        else:
            self._told(message, addr)

    def error_received(self, exc: Exception) -> None:
        """A neighbour's host says that nobody listens there: it does not answer, that is all."""

    def send(self, message: Question | Answer, to: Address) -> None:
        """Send one message; it may be lost."""
        if self._transport is not None:
            self._transport.sendto(seal(self._key, message), to)

    async def resolve(self, host: str) -> str | None:
        """The IPv4 address of a host now, None if nobody knows it."""
        try:
            found = await self._loop.getaddrinfo(
                host, None, family=socket.AF_INET, type=socket.SOCK_DGRAM
            )
        except socket.gaierror:
            return None
        return str(found[0][4][0])

    def close(self) -> None:
        """Stop listening."""
        if self._transport is not None:
            self._transport.close()
