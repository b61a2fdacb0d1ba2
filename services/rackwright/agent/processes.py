"""What /proc says of processes: identity that survives the reuse of a pid, and descent."""

import os

_SIGKILL_BIT = 1 << 8  # bit of signal 9 in SigPnd and ShdPnd of /proc/<pid>/status


def boot_id() -> str:
    """The random id of this boot of the kernel."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _stat(pid: int, proc: str) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the third (state) on; None if there is no such process."""
    try:
        with open(f"{proc}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def start_time(pid: int, proc: str = "/proc") -> int:
    """When a process started, in clock ticks since boot; 0 if it is gone or only a zombie."""
    fields = _stat(pid, proc)
    return 0 if fields is None or fields[0] in "ZX" else int(fields[19])


def is_same(pid: int, started: int, proc: str = "/proc") -> bool:
    """Whether the process that started then under this pid still lives."""
    return pid > 0 and started > 0 and start_time(pid, proc) == started


def all_pids(proc: str = "/proc") -> list[int]:
    """Every process that can be seen."""
    return [int(name) for name in os.listdir(proc) if name.isdigit()]


def _listed_children(pid: int, proc: str) -> list[int]:
    """Children by the kernel's own list. Raises FileNotFoundError where it keeps none."""
    found: list[int] = []
    try:
        threads = os.listdir(f"{proc}/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return found
    for thread in threads:
        try:
            with open(f"{proc}/{pid}/task/{thread}/children", encoding="ascii") as file:
                found.extend(int(child) for child in file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            if os.path.exists(f"{proc}/{pid}/task/{thread}"):
                raise FileNotFoundError(f"{proc}/{pid}/task/{thread}/children") from None
    return found


def _parents(proc: str) -> dict[int, list[int]]:
    """Children of every process, from the parent each names."""
    children: dict[int, list[int]] = {}
    for pid in all_pids(proc):
        fields = _stat(pid, proc)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(pid)
    return children


def descendants(pid: int, proc: str = "/proc") -> list[int]:
    """Children, their children and so on, zombies included.

    Not a snapshot: who forks meanwhile may hide a child, so a killer asks again until none is left.
    """
    try:
        level, found = _listed_children(pid, proc), list[int]()
        while level:
            found += level
            level = [child for parent in level for child in _listed_children(parent, proc)]
        return found
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        children = _parents(proc)
        level, found = children.get(pid, []), []
        while level:
            found += level
            level = [child for parent in level for child in children.get(parent, [])]
        return found


def is_doomed(pid: int, proc: str = "/proc") -> bool:
    """Whether a process is dead or has SIGKILL pending, so never runs user code again."""
    try:
        with open(f"{proc}/{pid}/status", encoding="utf-8", errors="replace") as file:
            status = dict(line.split(":", 1) for line in file if ":" in line)
    except (FileNotFoundError, ProcessLookupError):
        return True
    if status["State"].strip()[0] in "ZX":
        return True
    return any(int(status[name], 16) & _SIGKILL_BIT for name in ("SigPnd", "ShdPnd"))
