"""The shortest story of a failing seed: faults are left out, jobs and time taken away, in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.simulation.knobs import Knobs, draw
from tests.simulation.story import Outcome, play

MOST_TRIES = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A seed with what was taken away from it."""

    seed: int
    without: frozenset[str] = frozenset()
    jobs: int | None = None
    chaos_s: float | None = None
    brief: bool = False

    def command(self) -> str:
        """What reproduces it, in one line."""
        words = [f"make swarm SEEDS=1 SEED_START={self.seed}"]
        more = []
        if self.without:
            more.append(f"--without '{','.join(sorted(self.without))}'")
        if self.jobs is not None:
            more.append(f"--jobs {self.jobs}")
        if self.chaos_s is not None:
            more.append(f"--chaos {self.chaos_s:g}")
        if self.brief:
            more.append("--brief")
        return " ".join([*words, f'ARGS="{" ".join(["--story", *more])}"'])

    def play(self) -> Outcome:
        """Live through it."""
        return play(self.knobs())

    def knobs(self) -> Knobs:
        """Its world."""
        return draw(
            self.seed,
            without=self.without,
            jobs=self.jobs,
            chaos_s=self.chaos_s,
            brief=self.brief,
        )


def kind(violation: str) -> str:
    """What stays the same of a violation when names and numbers change."""
    words = ["#" if any(c.isdigit() for c in word) else word for word in violation.split()]
    return " ".join(words[:8])


def shrink(
    case: Case, violation: str, fails: Callable[[Case], str] = lambda case: case.play().violation
) -> Case:
    """Take away as much as leaves a violation of the same kind."""
    wanted, tries = kind(violation), 0

    def still(smaller: Case) -> bool:
        nonlocal tries
        tries += 1
        return tries <= MOST_TRIES and kind(fails(smaller)) == wanted

    knobs = case.knobs()
    for fault in sorted(knobs.rates):
        smaller = replace(case, without=case.without | {fault})
        if still(smaller):
            case = smaller
    for chaos_s in (2.0, 4.0, 8.0):
        if chaos_s < (case.chaos_s or knobs.chaos_s):
            smaller = replace(case, chaos_s=chaos_s)
            if still(smaller):
                case = smaller
                break
    for jobs in (0, 1, 2, 3):
        if jobs < (knobs.jobs if case.jobs is None else case.jobs):
            smaller = replace(case, jobs=jobs)
            if still(smaller):
                return smaller
    return case
