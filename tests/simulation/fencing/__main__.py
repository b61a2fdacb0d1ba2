"""Explore the fencing protocol: all sizes, or those that are named; prints a line for each."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import structlog

from tests.simulation.fencing import alone
from tests.simulation.fencing.search import explore
from tests.simulation.fencing.sizes import LARGE, SMALL

REPORT = Path("build/model.json")


def main() -> int:
    """Explore, say what was seen, write build/model.json; 1 if a promise can be broken."""
    parser = argparse.ArgumentParser(prog="model", description=__doc__)
    parser.add_argument("sizes", nargs="*", help="names of sizes; all without any")
    parser.add_argument("--most", type=int, help="leave a size after so many states")
    args = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    told = []
    broken = False
    for size in (*SMALL, *alone.SMALL, *LARGE, *alone.LARGE):
        if args.sizes and size.name not in args.sizes:
            continue
        found = explore(size, most=args.most)
        print(found.told(), *found.way, sep="\n    ", flush=True)
        told.append(found.counted())
        broken = broken or bool(found.harm)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
