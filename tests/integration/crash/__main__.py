"""`make crash`: a live cell struck many times; figures in build/crash.json."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import structlog

from tests.integration.crash.siege import CELL, Siege, besiege, kept_story
from tests.support.live import live_cell

OUT = Path("build/crash.json")


def _progress(siege: Siege) -> None:
    print(
        f"{len(siege.story):4d}  {siege.story[-1]:32s} healed in {siege.healed_s[-1]:6.2f} s",
        flush=True,
    )


def _write(figures: dict[str, object]) -> None:
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


async def _main(count: int, seed: int) -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    root = Path(tempfile.mkdtemp(prefix="rackwright-crash-"))
    began = time.monotonic()
    async with live_cell(root, CELL) as live:
        siege = await besiege(live, seed=seed, count=count, told=_progress)
    kept_story(root, siege)
    figures = {**siege.figures(), "wall_s": round(time.monotonic() - began, 1)}
    _write(figures)
    for violation in siege.violations:
        print(violation)
    if siege.violations:
        print(f"seed {seed}: {len(siege.violations)} violations; everything is in {root}")
        return 1
    shutil.rmtree(root)
    print(f"seed {seed}: {len(siege.story)} strikes, no violation; figures in {OUT}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    sys.exit(asyncio.run(_main(told.count, told.seed)))
