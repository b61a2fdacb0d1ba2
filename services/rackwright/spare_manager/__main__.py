"""`python -m rackwright.spare_manager`: run a copy of the spare-manager."""

from rackwright.host.service import run_service
from rackwright.spare_manager.config import HEARS
from rackwright.spare_manager.machine import SpareManager


def main() -> None:
    """Run until told to stop."""
    run_service(SpareManager(), HEARS)


if __name__ == "__main__":
    main()
