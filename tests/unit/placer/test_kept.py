"""A job that asks for it leaves its nodes to its owner when it fails."""

import pytest

from rackwright.wire.entries.cell import PolicySet, WishRefused
from rackwright.wire.entries.job import JobFailed, JobReleased
from rackwright.wire.ids import JobId, Owner
from rackwright.wire.policy import Policy
from rackwright.wire.wishes import LetGo
from tests.support.fleets import cell
from tests.unit.placer.desk import Desk, desk

A = JobId("a")


def failed(at: Desk, **spec: object) -> JobFailed:
    """Job a runs and fails."""
    at.started("a", nodes=2, restartable=False, **spec)
    at.exit_all("a", code=1)
    (entry,) = [one for one in at.live(60.0) if isinstance(one, JobFailed)]
    return entry


def test_kept_as_long_as_the_policy_says() -> None:
    at = desk(cell(1, policy=Policy(keep_on_failure_s=120.0)))
    assert failed(at, keep_on_failure=True).keep_s == 120.0
    assert set(at.fleet.kept) == {A}


@pytest.mark.parametrize(("keep", "seconds"), [(False, 120.0), (True, 0.0)])
def test_not_kept(keep: bool, seconds: float) -> None:
    at = desk(cell(1, policy=Policy(keep_on_failure_s=seconds)))
    assert failed(at, keep_on_failure=keep).keep_s == 0.0
    assert dict(at.fleet.kept) == {}


def test_its_owner_lets_them_go() -> None:
    at = desk(cell(1))
    failed(at, keep_on_failure=True)
    at.wish(LetGo(job=A))
    (answer,) = at.run()
    assert isinstance(answer, JobReleased)
    assert (answer.job, answer.by) == (A, "ann")
    at.wish(LetGo(job=A))
    (answer,) = at.run()
    assert isinstance(answer, WishRefused)
    assert answer.reason.code == "nothing-kept"


def test_nobody_else_does_but_an_operator() -> None:
    at = desk(cell(1))
    failed(at, keep_on_failure=True)
    at.other(PolicySet(policy=Policy(operators=(Owner("root"),)), by=Owner("root")))
    at.wish(LetGo(job=A), owner="bob")
    (answer,) = at.run()
    assert isinstance(answer, WishRefused)
    assert answer.reason.code == "not-yours"
    at.wish(LetGo(job=A), owner="root")
    (answer,) = at.run()
    assert isinstance(answer, JobReleased)
