"""The same seed is the same run, whatever the process: entry by entry, with their times."""

import os
import subprocess
import sys

RUN = """
import hashlib
from rackwright.simulator.cell import plain_racks
from rackwright.simulator.failures import FailureModel
from rackwright.simulator.generator import ITP, generated
from rackwright.simulator.mixture import Habits, jobs
from rackwright.simulator.policies import POLICIES
from rackwright.simulator.running import Plan, run

kept = hashlib.sha256()
plan = Plan(
    racks=plain_racks(2, 18, 4),
    failures=FailureModel.of(unavailable=0.1, repair_h=1.0, rack_mtbi_days=1.0, seed=5),
    seed=5,
    span_s=20_000.0,
)
made = run(
    POLICIES["no-swap"],
    jobs(generated(((ITP, 1.0),), load_gpus=100, span_s=20_000.0, seed=5), Habits(seed=5)),
    plan,
    recorders=[lambda _, step: kept.update(repr((step.stored.at, step.commit)).encode())],
)
del made.result["cpu_s"], made.result["engine"]["memory_mb"]
print(made.result["recovery"]["requeues"], kept.hexdigest(), sorted(made.result["gpu_s"].items()))
"""


def played(*, hashes: int) -> str:
    """A run in a process of its own, in which names are hashed by this seed."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, "PYTHONHASHSEED": str(hashes)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_run_does_not_depend_on_how_names_are_hashed() -> None:
    one = played(hashes=1)
    assert int(one.split()[0]) > 0, "several jobs go at once where a node fails"
    assert played(hashes=2) == one
