"""What a later copy of the placer has said, it says again until it is in the ledger."""

import pytest

from tests.support.fleets import cell
from tests.unit.placer.desk import Desk, desk


@pytest.fixture
def at() -> Desk:
    return desk(cell(2))


def test_a_verdict_that_is_held_back_is_said_again_until_somebody_has_taken_it(at: Desk) -> None:
    """A later copy leaves it to its betters for a while; they may have died meanwhile."""
    at.submit("train", nodes=4)
    at.run()
    at.all_up("train")
    first = at.offers()
    assert [entry.TYPE for offer in first for entry in offer.entries] == ["job.started"]
    assert at.offers() == first
    at.commit(first)
    assert at.offers() == []
