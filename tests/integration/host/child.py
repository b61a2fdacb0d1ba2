"""A service in a process of its own, for tests that kill it."""

from __future__ import annotations

import os

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Effect, Event, Wished
from rackwright.host.hearing import Hears
from rackwright.host.service import run_service
from tests.integration.host.machines import Refuser, Seen


class Failing(Refuser):
    """Fails at the first wish."""

    def handle(self, state: Seen, fleet: Fleet, event: Event) -> tuple[Seen, list[Effect]]:
        if isinstance(event, Wished):
            raise LookupError("this machine fails")
        return super().handle(state, fleet, event)


def main() -> None:
    """Say no to every wish, or fail."""
    machine = Failing() if "RACKWRIGHT_CHILD_FAILS" in os.environ else Refuser()
    run_service(machine, Hears(wishes=True))


if __name__ == "__main__":
    main()
