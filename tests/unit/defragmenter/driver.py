"""Drives the defragmenter as its host does: folds, gives it turns, keeps its effects."""

from dataclasses import dataclass, field
from typing import Any

from rackwright.core.evolve import evolve
from rackwright.core.machine import (
    Effect,
    Folded,
    Note,
    Offer,
    Refused,
    StatusSeen,
    Turn,
    WakeAt,
)
from rackwright.defragmenter.machine import Defragmenter
from rackwright.defragmenter.state import State
from rackwright.wire.ids import JobId, MessageId, NodeId, WorkerId
from rackwright.wire.message import Entry
from rackwright.wire.policy import Policy
from rackwright.wire.signals import NodeStatus, WorkerState, WorkerStatus
from tests.support.fleets import Cell, cell, hardware
from tests.unit.core.policy.defrag_cells import HOUR, SAVES, block, fill, pass_time


@dataclass(slots=True, kw_only=True)
class Driver:
    """A cell, one copy, and the clock of its process, which runs with ledger time."""

    made: Cell
    copy: int = 0
    machine: Defragmenter = field(default_factory=Defragmenter)
    state: State = field(init=False)
    seen: list[Effect] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = self.machine.start(self.copy)

    @property
    def now(self) -> float:
        return self.made.fleet.time

    def handle(self, event: Any) -> list[Effect]:
        self.state, effects = self.machine.handle(self.state, self.made.fleet, event)
        self.seen += effects
        return effects

    def turn(self) -> list[Effect]:
        return self.handle(Turn(now=self.now, mono=self.now))

    def wait(self, seconds: float) -> list[Effect]:
        """Let time pass, then a turn."""
        pass_time(self.made, seconds)
        return self.turn()

    def fold(self, *entries: Entry, source: str = "test/0") -> None:
        """Somebody commits these."""
        folding = self.made.add(*entries, source=source)
        self.told(entries, source, void=folding.void)

    def told(self, entries: tuple[Entry, ...], source: str, *, void: bool = False) -> None:
        fleet = self.made.fleet
        self.handle(
            Folded(
                now=self.now,
                mono=self.now,
                seq=fleet.seq,
                source=source,
                type=entries[0].TYPE,
                entries=entries,
                void=void,
            )
        )

    def commit(self, offer: Offer) -> None:
        """The ledger takes what this copy offered."""
        self.fold(*offer.entries, source=f"defragmenter/{self.copy}")

    def refuse(self, offer: Offer) -> list[Effect]:
        """Somebody was faster."""
        return self.handle(Refused(now=self.now, mono=self.now, offer=offer))

    def status(
        self, node: str, *workers: tuple[str, WorkerState, float | None], session: str = ""
    ) -> None:
        """The last value of a node: its workers, their states and checkpoints."""
        known = self.made.fleet.node(NodeId(node))
        place = self.made.fleet.places[known.name]
        value = NodeStatus(
            node=known.name,
            rack=self.made.fleet.rack_name(place.rack),
            session=session or known.session or "none",  # type: ignore[arg-type]
            boot=known.boot,
            n=1,
            hardware=hardware(node),
            workers=tuple(
                WorkerStatus(worker=WorkerId(name), state=state, checkpoint_at=saved)
                for name, state, saved in workers
            ),
        )
        event = StatusSeen(
            now=self.now, mono=self.now, id=MessageId("m"), at=self.now, status=value
        )
        self.handle(event)

    def all_run(self, job: str, *, checkpoint: float | None = None) -> None:
        """Every worker of a job that runs or leaves is told to be running by its node."""
        fleet = self.made.fleet
        leaving = fleet.leaving_of.get(JobId(job), ())
        for worker in leaving:
            spot = fleet.leaving[worker]
            node = fleet.node_at(spot.rack, spot.node)
            self.status(node.name, (worker, WorkerState.RUNNING, checkpoint))
        for part in self.made.job(job).slices if not leaving else ():
            for rank, place in enumerate(part.nodes, part.first_rank):
                node = fleet.node_at(part.rack, place)
                worker = part.worker(JobId(job), rank)
                self.status(node.name, (worker, WorkerState.RUNNING, checkpoint))


def offers(effects: list[Effect]) -> list[Offer]:
    return [effect for effect in effects if isinstance(effect, Offer)]


def offer(effects: list[Effect]) -> Offer:
    """The one offer among effects."""
    (found,) = offers(effects)
    return found


def types(effects: list[Effect]) -> list[str]:
    """Types of entries offered."""
    return [entry.TYPE for one in offers(effects) for entry in one.entries]


def wakes(effects: list[Effect]) -> list[float]:
    return [effect.mono for effect in effects if isinstance(effect, WakeAt)]


def notes(effects: list[Effect]) -> list[str]:
    return [effect.event for effect in effects if isinstance(effect, Note)]


def blocked_cell(policy: Policy | None = None, *, copy: int = 0) -> Driver:
    """p waits for 16 nodes; v may leave r0 for r2, or u may leave r1; the rest is pinned."""
    made = cell(3, policy=policy)
    made.sit("v", "r0", range(3), checkpoint=SAVES)
    made.sit("u", "r1", range(3), checkpoint=SAVES, priority=80)
    fill(made, "r2", range(14))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    return Driver(made=made, copy=copy)


def planned(driver: Driver) -> Offer:
    """The plan that is offered once the job has been blocked long enough."""
    driver.turn()
    return offer(driver.wait(31.0))


def with_policy(driver: Driver, **knobs: Any) -> None:
    fleet = driver.made.fleet
    driver.made.fleet = evolve(fleet, policy=evolve(fleet.policy, **knobs))
