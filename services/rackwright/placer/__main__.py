"""`python -m rackwright.placer`: run a copy of the placer."""

from rackwright.host.service import run_service
from rackwright.placer.config import HEARS
from rackwright.placer.machine import Placer


def main() -> None:
    """Run until told to stop."""
    run_service(Placer(), HEARS)


if __name__ == "__main__":
    main()
