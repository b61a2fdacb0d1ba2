"""`make swarm`: many seeds on all cores; what held goes to build/swarm.json.

A seed that breaks something is shrunk and printed with the one command that repeats it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from tests.simulation.knobs import draw
from tests.simulation.shrink import Case, shrink
from tests.simulation.story import Outcome, play

EVERY_S = 5.0
SHRUNK = 3  # violations that are shrunk in one run


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a swarm saw. `digest` is of all seeds' hashes in order."""

    seeds: int = 0
    seed_start: int = 0
    steps: int = 0
    commits: int = 0
    entries: int = 0
    voids: int = 0
    refused: int = 0
    workers_started: int = 0
    virtual_s: float = 0.0
    wall_s: float = 0.0
    refusals_per_commit: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    entries_by_type: Counter[str] = field(default_factory=Counter)
    violations: list[dict[str, Any]] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """One more seed."""
        self.seeds += 1
        self.steps += outcome.steps
        self.commits += outcome.commits
        self.entries += outcome.entries
        self.voids += outcome.voids
        self.refused += outcome.refused
        self.workers_started += outcome.starts
        self.virtual_s += outcome.virtual_s
        self.faults.update(outcome.faults)
        self.entries_by_type.update(outcome.counts)
        if outcome.violation:
            self.violations.append({"seed": outcome.seed, "what": outcome.violation})


def one(seed: int, *, brief: bool) -> Outcome:
    """Play a seed; its story stays behind, as it is long."""
    outcome = play(draw(seed, brief=brief))
    outcome.story = []
    return outcome


def swarm(start: int, seeds: int, *, brief: bool = False) -> Iterator[Outcome]:
    """Play seeds on all cores, in order."""
    work = partial(one, brief=brief)
    with multiprocessing.get_context("spawn").Pool(maxtasksperchild=100) as pool:
        yield from pool.imap(work, range(start, start + seeds), chunksize=4)


def run(start: int, seeds: int, out: Path, *, brief: bool = False) -> Tally:
    """A whole swarm, with progress on standard error."""
    tally = Tally(seed_start=start)
    began = said = time.monotonic()
    for outcome in swarm(start, seeds, brief=brief):
        tally.add(outcome)
        if outcome.violation:
            print(f"seed {outcome.seed}: {outcome.violation}", file=sys.stderr, flush=True)
        now = time.monotonic()
        if now - said >= EVERY_S:
            said = now
            left = (now - began) / tally.seeds * (seeds - tally.seeds)
            print(
                f"{tally.seeds}/{seeds} seeds, {tally.entries} entries,"
                f" {len(tally.violations)} violations, {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )
    tally.wall_s = round(time.monotonic() - began, 1)
    tally.refusals_per_commit = round(tally.refused / max(1, tally.commits), 4)
    for found in tally.violations[:SHRUNK]:
        case = shrink(Case(seed=found["seed"], brief=brief), found["what"])
        found["reproduce"] = case.command()
        print(f"seed {found['seed']}: {found['what']}\n  {case.command()}", file=sys.stderr)
    out.parent.mkdir(parents=True, exist_ok=True)
    shown = {one.name: getattr(tally, one.name) for one in fields(tally)}
    for name in ("faults", "entries_by_type"):
        shown[name] = dict(sorted(shown[name].items(), key=lambda item: -item[1]))
    out.write_text(json.dumps(shown, indent=2) + "\n", encoding="utf-8")
    return tally


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/swarm.json"))
    parser.add_argument("--brief", action="store_true", help="small worlds, as in the tests")
    parser.add_argument("--story", action="store_true", help="tell one seed's story")
    parser.add_argument("--without", default="", help="faults left out, with commas")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--chaos", type=float)
    asked = parser.parse_args()
    if asked.story:
        without = frozenset(filter(None, asked.without.split(",")))
        case = Case(seed=asked.start, without=without, jobs=asked.jobs, chaos_s=asked.chaos)
        outcome = case.play()
        print("\n".join(outcome.story))
        print(f"seed {asked.start}: {outcome.violation or 'nothing broke'}\n{outcome.digest}")
        return 1 if outcome.violation else 0
    tally = run(asked.start, asked.seeds, asked.out, brief=asked.brief)
    print(
        f"{tally.seeds} seeds, {tally.steps} steps, {tally.entries} entries,"
        f" {sum(tally.faults.values())} faults, {len(tally.violations)} violations,"
        f" {tally.wall_s} s: {asked.out}"
    )
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
