"""A rack's counters are kept in step with its tenants: as if all were counted anew."""

import random

import pytest

from rackwright.core.racks import Rack, Tenancy, refresh_use, seated, vacated
from rackwright.wire.ids import JobId
from rackwright.wire.policy import Policy
from tests.support.fleets import cell

GPUS = 4


def _tenancy(rng: random.Random, turn: int) -> Tenancy:
    """Some whole nodes, or GPUs of one; tenants overlap, as in the middle of a large entry."""
    whole = rng.random() < 0.4
    return Tenancy(
        job=JobId(f"j{turn}"),
        slice=rng.randrange(2),
        mask=rng.randrange(1, 1 << 6) if whole else 1 << rng.randrange(6),
        gpus=0 if whole else 1 << rng.randrange(GPUS),
        protected=rng.random() < 0.3,
        pinned=rng.random() < 0.3,
        lent=rng.random() < 0.3,
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_rack_that_tenants_come_to_and_leave_is_as_one_that_is_counted_anew(seed: int) -> None:
    rng = random.Random(seed)
    policy = Policy()
    rack: Rack = cell(racks=1, nodes=6).fleet.racks[0]
    for turn in range(200):
        if rack.tenancies and rng.random() < 0.5:
            gone = rng.choice(rack.tenancies)
            rack = vacated(rack, policy, gone.job, gone.slice)
        else:
            rack = seated(rack, policy, _tenancy(rng, turn))
        assert rack == refresh_use(rack, policy), f"seed {seed}, turn {turn}"
