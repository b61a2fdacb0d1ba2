"""How long appends wait when the leader of three servers is killed, cut off, split off or stopped.

python -m tests.integration.cluster --count 12; it needs root, and writes build/failover.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

from rackwright.bus.disk import fsync_p50_ms
from tests.integration.cluster.strikes import STRIKES, Struck, struck
from tests.integration.cluster.writing import open_bus, ready
from tests.support.network import lab

REPORT = Path("build/failover.json")


async def measure(root: Path, count: int) -> dict[str, object]:
    """Each strike so many times; seconds to the next acknowledged append, and what was lost."""
    found: dict[str, list[Struck]] = {}
    async with lab(root) as servers:
        admin = await open_bus(servers.servers, "admin")
        try:
            await ready(admin)
            for strike in STRIKES:
                mine = found.setdefault(strike.__name__, [])
                for _ in range(count):
                    mine.append(await struck(servers, admin, strike))
                    print(strike.__name__, mine[-1], flush=True)
        finally:
            await admin.close()
    every = [one for each in found.values() for one in each]
    return {
        "fsync_p50_ms": round(fsync_p50_ms(root), 2),
        "acknowledged": sum(one.acked for one in every),
        "found_after_no_answer": sum(one.found for one in every),
        "lost": sum(one.lost for one in every),
        "seconds": {name: spread([one.took for one in each]) for name, each in found.items()},
    }


def spread(values: list[float]) -> dict[str, float]:
    """How many, median and 99th percentile."""
    p99 = quantiles(values, n=100, method="inclusive")[98]
    return {"n": len(values), "p50": round(median(values), 2), "p99": round(p99, 2)}


def main() -> int:
    """Measure and say; 1 if anything acknowledged was lost."""
    parser = argparse.ArgumentParser(prog="failover", description=__doc__)
    parser.add_argument("--count", type=int, default=12, help="of each strike")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rackwright-failover-") as root:
        found = asyncio.run(measure(Path(root), args.count))
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    return int(found["lost"] != 0)


if __name__ == "__main__":
    sys.exit(main())
