"""`python -m tests.e2e`: the tests in containers, three cells side by side, for most of the time of
each is waiting. The words after it are given to pytest.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.support.engine import IMAGE_ENV, REQUIRE_ENV, ROOT, engine_missing, image
from tests.support.previous import TREE_ENV, build_previous

HERE = "tests/e2e"
APART = ("test_cluster.py", "test_life.py")  # each has a compose project of its own
CELL = [HERE, *(f"--ignore={HERE}/{name}" for name in APART)]
# Where the machine is busy with three cells, to bring one up may take as long as a test may hang.
HANGS = ("-o", "faulthandler_timeout=900")
NO_TESTS = 5  # pytest's status; of a group of which none was chosen


async def run(name: str, words: list[str], environment: dict[str, str]) -> int:
    """Run one group; what it said is shown when it is over. Returns pytest's status."""
    begun = time.monotonic()
    report = f"--junitxml=build/junit-containers-{name}.xml"
    command = [sys.executable, "-m", "pytest", *words, report, *HANGS, *sys.argv[1:]]
    made = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await made.communicate()
    status = made.returncode or 0
    print(f"--- {name}: status {status} after {time.monotonic() - begun:.0f} s", flush=True)
    sys.stdout.buffer.write(said)
    sys.stdout.flush()
    return status


async def life(folder: Path, environment: dict[str, str]) -> int:
    """The cell that is upgraded: the image before this is built while the others begin."""
    tree = await asyncio.to_thread(build_previous, folder)
    return await run("life", [f"{HERE}/test_life.py"], {**environment, TREE_ENV: str(tree)})


async def main() -> int:
    """All groups at once; 0 if each of them passed."""
    if why := engine_missing():
        print(f'{why}; eval "$(.ci/engine)" gets an engine', file=sys.stderr)
        return 1
    environment = {**os.environ, REQUIRE_ENV: "1", IMAGE_ENV: image()}
    with tempfile.TemporaryDirectory(prefix="rackwright-previous-") as folder:
        statuses = await asyncio.gather(
            run("cell", CELL, environment),
            run("cluster", [f"{HERE}/test_cluster.py"], environment),
            life(Path(folder), environment),
        )
    wrong = [one for one in statuses if one not in {0, NO_TESTS}]
    return 1 if wrong or all(one == NO_TESTS for one in statuses) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
