"""`python -m rackwright.gateway`: run a copy of the gateway."""

from typing import Any

from rackwright.gateway.config import HEARS
from rackwright.gateway.desk import Desk
from rackwright.gateway.machine import Gateway
from rackwright.gateway.prometheus import expose
from rackwright.host.service import Host, run_service


def main() -> None:
    """Run until told to stop."""
    desk = Desk()

    async def beside(host: Host[Any]) -> None:
        expose(host.runner.metrics.registry, desk)
        await desk.serve(host.bus, host.runner)

    run_service(Gateway(), HEARS, patience_s=0.0, beside=[beside], routes=desk.routes())


if __name__ == "__main__":
    main()
