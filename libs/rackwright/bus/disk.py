"""How fast the disk makes things durable; it moves every figure of a bus that syncs always."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path


def fsync_p50_ms(directory: Path | str, *, writes: int = 64, size: int = 512) -> float:
    """Median milliseconds of append plus fsync of `size` bytes in `directory`. Raises OSError."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    block = os.urandom(size)
    took: list[float] = []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(writes):
            began = time.perf_counter()
            file.write(block)
            os.fsync(file.fileno())
            took.append((time.perf_counter() - began) * 1000.0)
    return statistics.median(took)
