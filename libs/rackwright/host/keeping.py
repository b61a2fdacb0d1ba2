"""Keeps streams from filling up: looks how full the ledger is, drops answered wishes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from rackwright.bus.errors import BusAway, BusDenied, StreamMissing
from rackwright.bus.ports import Bus
from rackwright.bus.streams import Limits
from rackwright.host.metrics import Metrics
from rackwright.host.standing import Standing

LOOK_S = 15.0


async def watch_room(
    bus: Bus, limits: Limits, standing: Standing, metrics: Metrics, changed: Callable[[], None]
) -> None:
    """Tell now and then how full the ledger is; above `ledger_alarm` of its size, alarm."""
    log: Any = structlog.get_logger()
    alarmed = False
    while True:
        try:
            used = (await bus.ledger.usage()).fraction
        except (BusAway, StreamMissing):  # the service waits for both by itself
            await asyncio.sleep(LOOK_S)
            continue
        metrics.ledger_used.set(used)
        if (used >= limits.ledger_alarm) != alarmed:
            alarmed = not alarmed
            fields = {"used": round(used, 3), "refuse_at": limits.ledger_refuse}
            log.error("ledger.filling", **fields) if alarmed else log.info("ledger.room", **fields)
        room = (used, limits.ledger_refuse)
        if room != standing.room:
            standing.room = room
            changed()
        await asyncio.sleep(LOOK_S)


async def trim_wishes(bus: Bus, to: int) -> None:
    """Drop the wishes up to `to`; what fails is dropped with the next."""
    log: Any = structlog.get_logger()
    try:
        await bus.wishes.trim(to + 1)
    except BusAway as error:
        log.info("wishes.untrimmed", to=to, why=str(error))
    except BusDenied as error:
        log.warning("wishes.trim_denied", to=to, why=str(error))
