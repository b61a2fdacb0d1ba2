"""`python -m rackwright.health_monitor`: run a copy of the health-monitor."""

from rackwright.health_monitor.config import HEARS, PATIENCE_S
from rackwright.health_monitor.machine import HealthMonitor
from rackwright.host.service import run_service


def main() -> None:
    """Run until told to stop."""
    run_service(HealthMonitor(), HEARS, patience_s=PATIENCE_S)


if __name__ == "__main__":
    main()
