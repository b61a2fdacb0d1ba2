"""`python -m rackwright.dispatcher`: run a dispatcher."""

from rackwright.dispatcher.machine import Dispatcher
from rackwright.host.hearing import Hears
from rackwright.host.service import run_service

if __name__ == "__main__":
    run_service(Dispatcher(), Hears(status=True, snapshots=True))
