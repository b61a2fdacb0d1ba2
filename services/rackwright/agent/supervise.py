"""Start of a supervisor (`python -I -S supervise.py DIRECTORY`) or of a server that forks them.

Run by path, never imported.
"""

import sys

sys.path.append(__file__.rsplit("/", 3)[0])  # without site-packages, for a start in milliseconds

from rackwright.agent.forkserver import serve
from rackwright.agent.supervisor import Supervisor

directory = sys.argv[1] if len(sys.argv) > 1 else serve()
if directory is not None:
    Supervisor(directory).run()
