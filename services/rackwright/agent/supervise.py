"""Start of a supervisor: `python -I -S supervise.py DIRECTORY`. Run by path, never imported."""

import sys

sys.path.append(__file__.rsplit("/", 3)[0])  # without site-packages, for a start in milliseconds

from rackwright.agent.supervisor import Supervisor

Supervisor(sys.argv[1]).run()
