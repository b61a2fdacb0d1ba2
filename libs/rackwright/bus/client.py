"""nats-py's client, with what must be mended inside it."""

from __future__ import annotations

from typing import Any

from nats.aio.client import Client
from nats.errors import StaleConnectionError


class NatsClient(Client):
    """nats-py, reading headers at a third of the cost; replaying a ledger is mostly that."""

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        headers: dict[str, str] = {}
        for line in raw.decode("utf-8", "replace").split("\r\n"):
            name, colon, value = line.partition(":")
            if colon and " " not in name:
                headers[name] = value.strip()
        return headers

    async def _flush_pending(self, force_flush: bool = False) -> Any:
        """uvloop's transport, once it is closed, answers with a RuntimeError, which nats-py, that
        has not seen the end of the connection yet, lets through to whoever publishes."""
        try:
            return await super()._flush_pending(force_flush)
        except RuntimeError as error:
            raise StaleConnectionError from error
