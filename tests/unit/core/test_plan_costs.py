"""What a plan cost in the end, beside its estimate."""

import pytest

from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.plan_costs import PlanCosts
from rackwright.wire.entries.job import JobFinished, JobStarted
from rackwright.wire.entries.node import NodeCleaning
from rackwright.wire.entries.slice import DefragPlanned, DefragWithdrawn
from rackwright.wire.ids import JobId
from rackwright.wire.message import Entry
from rackwright.wire.reasons import Reason
from tests.unit.defragmenter.driver import Driver, blocked_cell, planned

V, P = JobId("v"), JobId("p")


class Told:
    """A cell whose commits are reckoned."""

    def __init__(self) -> None:
        self.driver: Driver = blocked_cell()
        self.costs = PlanCosts()
        offer = planned(self.driver)
        (entry,) = offer.entries
        assert isinstance(entry, DefragPlanned)
        self.plan = entry
        self.tell(entry)

    @property
    def fleet(self) -> Fleet:
        return self.driver.made.fleet

    def tell(self, entry: Entry) -> None:
        before = self.fleet
        self.driver.made.fleet = apply(before, entry)
        self.costs.take((entry,), before, self.fleet)

    def wait(self, seconds: float) -> None:
        self.driver.made.wait(seconds)

    def stop(self) -> None:
        """Every old worker of the victim ends."""
        for worker in self.fleet.leaving_of.get(V, ()):
            place = self.fleet.leaving[worker]
            node = self.fleet.node_at(place.rack, place.node)
            self.tell(NodeCleaning(node=node.name, of=node.last, ended=(worker,), done=True))

    def start(self, name: JobId) -> None:
        self.tell(JobStarted(job=name, membership=self.fleet.jobs[name].membership))


def test_the_times_as_they_came() -> None:
    told = Told()
    (victim,) = told.plan.victims
    began = told.fleet.time
    told.wait(60.0)
    told.stop()
    stopped = told.fleet.time
    told.wait(120.0)
    told.start(P)
    served = told.fleet.time
    assert told.costs.plans == 0  # the victim is still on its way
    told.wait(240.0)
    told.start(V)
    assert told.costs.plans == 1
    policy, terms = told.fleet.policy, victim.cost
    stood = (told.fleet.time - stopped) / 3600.0
    held = told.plan.hold_gpu_h * (served - began) / (told.plan.notice_s + policy.defrag_drain_s)
    lost = terms.gpus * (terms.lost_h + stood) * terms.weight
    assert told.costs.actual == pytest.approx(lost + policy.defrag_victim_cost_gpu_h + held)
    assert told.costs.estimated == told.plan.cost_gpu_h


def test_as_estimated_when_all_goes_by_the_book() -> None:
    told = Told()
    (victim,) = told.plan.victims
    policy = told.fleet.policy
    told.wait(told.plan.notice_s)
    told.stop()
    told.wait(policy.defrag_drain_s)
    told.start(P)
    told.wait(victim.cost.restart_h * 3600.0 - policy.defrag_drain_s)
    told.start(V)
    assert told.costs.actual == pytest.approx(told.plan.cost_gpu_h)


def test_a_spared_victim_costs_nothing() -> None:
    told = Told()
    why = Reason(code="fits")
    told.tell(DefragWithdrawn(plan=told.plan.plan, spared=(V,), reason=why))
    assert told.costs.plans == 1
    assert told.costs.actual == 0.0


def test_who_ends_on_the_way_is_reckoned_up_to_then() -> None:
    told = Told()
    told.stop()
    told.wait(60.0)
    told.start(P)
    told.tell(JobFinished(job=V))
    assert told.costs.plans == 1
    assert told.costs.actual < told.plan.cost_gpu_h


def test_stretches_of_a_ledger_add_up() -> None:
    one, other = PlanCosts(1, 2.0, 3.0), PlanCosts(2, 5.0, 7.0)
    one.join(other)
    assert (one.plans, one.estimated, one.actual) == (3, 7.0, 10.0)
