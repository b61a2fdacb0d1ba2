"""A service in a process of its own, for tests that kill it."""

from __future__ import annotations

from rackwright.host.hearing import Hears
from rackwright.host.service import run_service
from tests.integration.host.machines import Refuser


def main() -> None:
    """Say no to every wish."""
    run_service(Refuser(), Hears(wishes=True))


if __name__ == "__main__":
    main()
