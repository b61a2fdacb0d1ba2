"""`python -m rackwright.gateway`: run a copy of the gateway."""

from typing import Any

from rackwright.gateway.config import HEARS
from rackwright.gateway.desk import Desk
from rackwright.gateway.machine import Gateway
from rackwright.gateway.prometheus import expose
from rackwright.gateway.roster import Roster
from rackwright.host.clock import boottime
from rackwright.host.service import Host, run_service


def main() -> None:
    """Run until told to stop."""
    desk = Desk()

    async def serve(host: Host[Any]) -> None:
        expose(host.runner.metrics.registry, desk)
        await desk.serve(host.bus, host.runner)

    async def count(host: Host[Any]) -> None:
        desk.roster = roster = Roster(host.bus.cell, boottime)
        await roster.run(host.bus, f"{host.settings.connect_options().inbox_prefix}.roster")

    run_service(Gateway(), HEARS, patience_s=0.0, beside=[serve, count], routes=desk.routes())


if __name__ == "__main__":
    main()
