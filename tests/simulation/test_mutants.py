"""The simulation can fail: with a rule left out it finds a broken promise within its seeds."""

from collections.abc import Callable

import pytest

from tests.simulation.knobs import draw
from tests.simulation.mutants import MUTANTS
from tests.simulation.story import play

FIRST = 10_000
SEEDS = 1000
# Seeds from FIRST on that are known to notice nothing, and are passed over to save time.
NEAR = {
    "ended_is_done": 25,
    "join_without_the_living": 28,
    "old_values_win": 72,
    "without_recall": 64,
    "without_sessions": 117,
    "without_waiting_for_leases": 14,
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_rule_left_out_is_noticed(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    for seed in range(FIRST + NEAR.get(mutant.__name__, 0), FIRST + SEEDS):
        outcome = play(draw(seed))
        if outcome.violation:
            print(f"{mutant.__name__}: seed {seed}: {outcome.violation}")
            return
    pytest.fail(f"{mutant.__name__} survives {SEEDS} seeds")
