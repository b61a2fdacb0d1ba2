"""`python -m rackwright.defragmenter`: run a copy of the defragmenter."""

from rackwright.defragmenter.config import HEARS
from rackwright.defragmenter.machine import Defragmenter
from rackwright.host.service import run_service


def main() -> None:
    """Run until told to stop."""
    run_service(Defragmenter(), HEARS)


if __name__ == "__main__":
    main()
