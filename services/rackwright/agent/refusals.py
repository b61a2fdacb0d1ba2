"""What the worker store will not do, each with the reason in fields."""

from pathlib import Path


class Refused(Exception):
    """What was asked would break a safety rule."""


class NodeTaken(Refused):
    """Another agent has this node's directory."""

    def __init__(self, root: Path) -> None:
        super().__init__(f"another agent has {root}")
        self.root = root


class NoLease(Refused):
    """The lease of the node has ended, so nothing may start on it."""

    def __init__(self, until_ns: int, now_ns: int) -> None:
        super().__init__(f"the lease ended {(now_ns - until_ns) / 1e9:.3f} s ago")
        self.until_ns = until_ns


class HasEnded(Refused):
    """A worker id that has ended is never started again."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"worker {worker_id} has ended")
        self.worker_id = worker_id


class DiskRefuses(Refused):
    """The agent's disk takes nothing: most likely it is full."""

    def __init__(self, worker_id: str, error: OSError) -> None:
        super().__init__(f"worker {worker_id}: {error.strerror}: {error.filename}")
        self.worker_id = worker_id
        self.path = error.filename
        self.problem = error.strerror


class UnknownWorker(Refused):
    """No such worker on this node."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"no worker {worker_id} on this node")
        self.worker_id = worker_id


class GpusBusy(Refused):
    """A GPU is still held by another worker, running or not yet reaped."""

    def __init__(self, worker_id: str, holder: str, gpus: frozenset[int]) -> None:
        super().__init__(f"worker {worker_id}: GPUs {sorted(gpus)} are held by {holder}")
        self.worker_id = worker_id
        self.holder = holder
        self.gpus = gpus
