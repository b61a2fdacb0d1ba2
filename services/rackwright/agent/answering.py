"""The agent's small HTTP server, for what keeps containers: may its nodes run work?"""

import asyncio
from collections.abc import Iterable

from rackwright.agent.lease import now_ns
from rackwright.agent.node import NodeAgent
from rackwright.bus.ports import Link
from rackwright.host.config import Settings
from rackwright.host.metrics import Metrics
from rackwright.host.standing import Standing
from rackwright.host.web import Web

LOOK_S = 1.0


async def answer(
    settings: Settings, standing: Standing, link: Link, nodes: Iterable[NodeAgent]
) -> None:
    """Serve until cancelled; ready while the bus is there and every node has a lease."""
    metrics = Metrics(settings.service, settings.copy, settings.cell)
    metrics.watch(standing, link)
    web = Web(standing, metrics)
    try:
        await web.start(settings.http_host, settings.http_port)
        while True:
            standing.connected = link.connected
            without = [node.who.node for node in nodes if node.hold.until_ns < now_ns()]
            if without:
                standing.set_waiting(f"{len(without)} nodes have no lease, {without[0]} is one")
            else:
                standing.set_ready()
            await asyncio.sleep(LOOK_S)
    finally:
        await web.aclose()
