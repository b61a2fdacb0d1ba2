"""Forks supervisors for an agent, so that each starts in a few milliseconds and shares its memory.

Each directory that arrives on standard input, ended by a NUL, becomes a supervisor that belongs to
nobody: in its own session, with init as its parent. Its pid goes back on standard output.
"""

import os


def serve() -> str | None:
    """Serve until the agent is gone, then None. In each new supervisor: its directory."""
    heard = b""
    while data := os.read(0, 65_536):
        *directories, heard = (heard + data).split(b"\0")
        for directory in directories:
            middle = os.fork()
            if not middle:
                return _detach(os.fsdecode(directory))
            os.waitpid(middle, 0)
    return None


def _detach(directory: str) -> str:
    """Fork once more and let the process in the middle go."""
    os.setsid()
    # Open before the pid is told: from then on the agent may write to it.
    control = os.open(directory + "/control", os.O_RDWR | os.O_NONBLOCK)
    pid = os.fork()
    if pid:
        os.write(1, b"%d\n" % pid)
        os._exit(0)
    log = os.open(directory + "/supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for ours, standard in ((control, 0), (log, 1), (log, 2)):
        os.dup2(ours, standard)
    os.close(control)
    os.close(log)
    return directory
