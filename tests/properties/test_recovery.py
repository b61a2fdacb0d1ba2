"""Whatever happens to a small cell, recovery is legal, keeps to its rules, and comes to an end."""

from typing import Any

from hypothesis import given, note, settings
from hypothesis import strategies as st

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import ASSIGNED, Job
from rackwright.core.machine import Offer, Turn
from rackwright.spare_manager.machine import SpareManager
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import NodeId, WorkerId
from rackwright.wire.jobs import Checkpoint, JobClass
from rackwright.wire.nodes import FITNESS_ORDER, Fitness
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell
from tests.support.recovery import crash, degrade, drain

RACKS, NODES = 3, 8
HEALING = (SliceSwapped, SliceMoved, SliceRestarted)
MACHINE = SpareManager()
NODE = st.tuples(st.integers(0, RACKS - 1), st.integers(0, NODES - 1))
TROUBLE = st.one_of(
    st.tuples(st.just("unfit"), NODE, st.sampled_from(["xid.79", "xid.48"])),
    st.tuples(st.just("weak"), NODE, st.just("ib-down")),
    st.tuples(st.just("fail"), NODE, st.just("silence")),
    st.tuples(st.just("crash"), NODE, st.sampled_from(["exit.1", "start-timeout"])),
    st.tuples(st.just("drain"), NODE, st.just("")),
    st.tuples(st.just("suspect"), NODE, st.just("")),
    st.tuples(st.just("join"), NODE, st.just("")),
    st.tuples(st.just("recover"), NODE, st.sampled_from(["", "probation"])),
    st.tuples(st.just("degrade"), NODE, st.just("")),
    st.tuples(st.just("wait"), NODE, st.just("")),
)
SPECS: list[dict[str, Any]] = [
    {},
    {"priority": 20},
    {"priority": 80, "retry_budget": 2},
    {"job_class": JobClass.INTERACTIVE},
    {"restartable": False},
    {"checkpoint": Checkpoint(interval_s=600.0, on_notice_s=10.0), "retry_budget": 1},
]


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    """Jobs of many sizes on a few racks, some on lent spares, some in part of a node."""
    made = cell(RACKS, NODES, policy=Policy(slice_nodes=6, breaker_min=100))
    if draw(st.booleans()):
        made.spread("wide", [("r0", [0, 1, 2]), ("r1", [0, 1, 2])], priority=60)
    for number in range(draw(st.integers(1, 8))):
        rack = draw(st.integers(0, RACKS - 1))
        free = [place for place in range(NODES) if made.fleet.racks[rack].free >> place & 1]
        if not free:
            continue
        size = draw(st.integers(1, len(free)))
        spec = draw(st.sampled_from(SPECS))
        lent = size <= 2 and draw(st.booleans())
        gpus = draw(st.sampled_from([0, 0b0011])) if size == 1 else 0
        made.sit(f"j{number}", f"r{rack}", free[:size], gpus=gpus, lent=lent, **spec)
    made.wait(draw(st.sampled_from([0, 1200])))
    return made


def happen(made: Cell, kind: str, at: tuple[int, int], code: str) -> None:
    """One piece of trouble, if it can happen there."""
    node = made.fleet.node_at(*at)
    if kind in {"unfit", "weak"}:
        wanted = Fitness.RACK if kind == "weak" else Fitness.NONE
        if FITNESS_ORDER[wanted] < FITNESS_ORDER[node.fitness]:
            made.unfit(node.name, wanted, code)
    elif kind == "crash":
        _crash(made, at, code)
    elif kind == "degrade":
        if made.fleet.racks[at[0]].fitness == "good":
            degrade(made, f"r{at[0]}")
    elif kind == "wait":
        made.wait(100)
    else:
        _change(made, kind, node.name, code)


def _crash(made: Cell, at: tuple[int, int], code: str) -> None:
    for tenancy in made.fleet.racks[at[0]].tenants_at(at[1]):
        job = made.fleet.jobs[tenancy.job]
        part = job.slices[tenancy.slice]
        rank = part.first_rank + part.nodes.index(at[1])
        if not any(wound.rank == rank for wound in job.wounds):
            crash(made, job.id, rank, code=1 if code == "exit.1" else None, why=code)


def _change(made: Cell, kind: str, name: NodeId, code: str) -> None:
    node = made.fleet.node(name)
    if kind == "fail" and node.session is not None and not node.suspected:
        made.fail(name, code)
    elif kind == "suspect" and node.session is not None and not node.suspected:
        made.suspect(name)
    elif kind == "drain" and not node.draining:
        drain(made, name)
    elif kind == "join":
        made.join(name)
    elif kind == "recover" and node.session is not None and node.fitness is not Fitness.FULL:
        made.recover(name, probation_s=3600.0 if code else 0.0)


def recover(made: Cell) -> None:
    """Turn after turn until nothing is left to do; the ledger takes all of it."""
    state = MACHINE.start(0)
    for turns in range(40):
        event = Turn(now=made.fleet.time, mono=100.0 * turns)
        state, effects = MACHINE.handle(state, made.fleet, event)
        offers = [one for one in effects if isinstance(one, Offer)]
        if not offers:
            return
        for entry in (entry for offer in offers for entry in offer.entries):
            note(f"{entry.TYPE} {entry}")
            before = made.fleet
            made.add(entry)
            obeys(before, entry, made.fleet)
    raise AssertionError("recovery does not come to an end")


def bad_nodes(fleet: Fleet, job: Job) -> set[tuple[int, int]]:
    """Racks and places of its wounded ranks."""
    found = set()
    for wound in job.wounds:
        part = job.slice_of(wound.rank)
        found.add((part.rack, part.nodes[wound.rank - part.first_rank]))
    return found


def workers(job: Job) -> dict[int, WorkerId]:
    return {rank: job.worker(rank) for rank in range(job.ranks)}


def obeys(before: Fleet, entry: Any, after: Fleet) -> None:
    """The rules that no entry of recovery may break."""
    old, new = before.jobs[entry.job], after.jobs[entry.job]
    assert old.spec.restartable
    assert old.state in ASSIGNED
    for name in getattr(entry, "evicted", ()):
        assert before.jobs[name].spec.job_class is not JobClass.INTERACTIVE
        assert before.jobs[name].spec.preemptible
    untouched = set(before.jobs) - {entry.job, *getattr(entry, "evicted", ())}
    assert all(before.jobs[name] == after.jobs[name] for name in untouched)
    charged = isinstance(entry, SliceRestarted) and entry.charge
    assert new.retries == old.retries + charged <= max(old.spec.retry_budget, old.retries)
    if not isinstance(entry, HEALING):
        return
    assert new.membership == old.membership + 1
    _places(before, entry, old, new)


def _places(before: Fleet, entry: Any, old: Job, new: Job) -> None:
    """Only the ranks it speaks of have a new process, and never on a node that is bad for them."""
    part = new.slices[entry.index]
    named = set(range(part.first_rank, part.first_rank + part.size))
    if isinstance(entry, SliceSwapped):
        named = {swap.rank for swap in entry.swaps}
    elif isinstance(entry, SliceRestarted):
        named = set(entry.ranks)
    was, now = workers(old), workers(new)
    assert {rank for rank in was if was[rank] != now[rank]} == named
    assert all(now[rank].endswith(f"/{new.membership}") for rank in named)
    if isinstance(entry, SliceRestarted):
        return
    given = {(part.rack, part.nodes[rank - part.first_rank]) for rank in named}
    assert not given & bad_nodes(before, old)
    left = {one.node for one in old.swaps if one.at > before.time - 3600 and one.code != "drain"}
    assert not {before.node_at(*place).name for place in given} & left


@settings(max_examples=150)
@given(made=cells(), trouble=st.lists(st.lists(TROUBLE, min_size=1, max_size=4), max_size=6))
def test_recovery_keeps_to_its_rules(
    made: Cell, trouble: list[list[tuple[str, tuple[int, int], str]]]
) -> None:
    for several in trouble:
        for kind, at, code in several:
            note(f"{kind} {at} {code}")
            happen(made, kind, at, code)
        recover(made)
