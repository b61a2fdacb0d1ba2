"""A placer at a test cell: what it offers is committed, as its host would do."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    Acked,
    Effect,
    Event,
    Folded,
    Note,
    Offer,
    Refused,
    StatusSeen,
    Turn,
    WakeAt,
    Wished,
    WishSkipped,
)
from rackwright.placer.machine import Placer
from rackwright.placer.state import State
from rackwright.wire.entries.job import JobFailed, JobRequeued, WorkerFailed
from rackwright.wire.ids import JobId, MessageId, NodeId, Owner, RackId, SessionId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.signals import NodeStatus, WorkerState, WorkerStatus
from rackwright.wire.wishes import Submit, Wish
from tests.support.fleets import Cell, hardware


@dataclass(slots=True, kw_only=True)
class Desk:
    """`mono` runs with ledger time. `said` are all entries that were committed."""

    cell: Cell
    placer: Placer = field(default_factory=Placer)
    state: State = field(default_factory=lambda: Placer().start(0))
    mono: float = 100.0
    seq: int = 0
    said: list[Entry] = field(default_factory=list)
    told: dict[NodeId, dict[str, WorkerStatus]] = field(default_factory=dict)
    sessions: dict[NodeId, SessionId] = field(default_factory=dict)

    @property
    def fleet(self) -> Fleet:
        return self.cell.fleet

    @property
    def times(self) -> dict[str, float]:
        return {"now": self.fleet.time, "mono": self.mono}

    def give(self, event: Event) -> list[Effect]:
        self.state, effects = self.placer.handle(self.state, self.fleet, event)
        assert not any(isinstance(effect, Note) for effect in effects)
        return effects

    def wish(self, wish: Wish, owner: str = "ann", ago: float = 0.0) -> int:
        """Somebody wishes something; the sequence of the wish. `ago` by the server's clock."""
        self.seq += 1
        event = Wished(
            **self.times,
            seq=self.seq,
            id=MessageId(f"w{self.seq}"),
            owner=Owner(owner),
            at=self.fleet.time - ago,
            wish=wish,
        )
        assert self.give(event) == []
        return self.seq

    def skip(self) -> None:
        """A wish that could not be read."""
        self.seq += 1
        self.give(WishSkipped(**self.times, seq=self.seq))

    def submit(self, job: str, owner: str = "ann", **spec: Any) -> int:
        """A job is wished for."""
        spec = {"name": job} | spec
        return self.wish(Submit(job=JobId(job), spec=JobSpec(**spec)), owner)

    def turn(self) -> list[Effect]:
        """What is decided now; nothing is committed."""
        return self.give(Turn(**self.times))

    def offers(self) -> list[Offer]:
        """The offers of a turn."""
        return [effect for effect in self.turn() if isinstance(effect, Offer)]

    def commit(self, offers: Iterable[Offer]) -> list[Entry]:
        """Commit offers one by one and tell of each."""
        said: list[Entry] = []
        for offer in offers:
            self.cell.add(*offer.entries, source="placer/0", wishes_to=offer.wishes_to)
            said += offer.entries
            self.folded(offer.entries, "placer/0")
        self.said += said
        return said

    def folded(self, entries: tuple[Entry, ...] = (), source: str = "test/0") -> None:
        """The newest commit has been folded."""
        kind = entries[0].TYPE if entries else "test"
        event = Folded(
            now=self.fleet.time,
            mono=self.mono,
            seq=self.fleet.seq,
            source=source,
            type=kind,
            entries=entries,
        )
        assert self.give(event) == []

    def other(self, *entries: Entry) -> None:
        """Another service commits."""
        self.cell.add(*entries)
        self.folded(entries)

    def run(self, turns: int = 20) -> list[Entry]:
        """Turn and commit until there is nothing to say; all that was said, in order."""
        said: list[Entry] = []
        for _ in range(turns):
            offers = self.offers()
            if not offers:
                return said
            said += self.commit(offers)
        raise AssertionError(f"still offering after {turns} turns: {offers}")

    def types(self) -> list[str]:
        """The types of what `run` says."""
        return [entry.TYPE for entry in self.run()]

    def refuse(self, offer: Offer) -> list[Effect]:
        """Somebody else was first."""
        return self.give(Refused(**self.times, offer=offer))

    def acked(self) -> None:
        """The newest commit was ours, and the bus has said so."""
        assert self.give(Acked(**self.times, sent_mono=self.mono, seq=self.fleet.seq)) == []

    def wait(self, seconds: float) -> None:
        """Time passes, and the ledger goes on."""
        before = self.fleet.seq
        self.cell.wait(seconds)
        self.mono += seconds
        if self.fleet.seq > before:
            self.folded()

    def live(self, seconds: float) -> list[Entry]:
        """Time passes with a turn every second; what was said meanwhile."""
        said: list[Entry] = []
        for _ in range(int(seconds)):
            self.wait(1.0)
            said += self.run()
        return said

    def wakes(self) -> list[float]:
        """In how many seconds the placer wants a turn, by itself."""
        effects = self.turn()
        assert not any(isinstance(effect, Offer) for effect in effects)
        wakes = [round(one.mono - self.mono, 3) for one in effects if isinstance(one, WakeAt)]
        return sorted(set(wakes))

    def worker(
        self,
        job: str,
        rank: int,
        state: WorkerState,
        code: int | None = None,
        incarnation: int | None = None,
        ready: bool | None = None,
    ) -> None:
        """The node of a rank says what its worker does."""
        known = self.cell.job(job)
        part = known.slice_of(rank)
        node = self.fleet.node_at(part.rack, part.nodes[rank - part.first_rank])
        name = known.worker(rank)
        if incarnation is not None:
            name = type(name)(f"{job}/{rank}/{incarnation}")
        ready = state is WorkerState.RUNNING if ready is None else ready
        workers = self.told.setdefault(node.name, {})
        pid = None if state is WorkerState.PREPARED else 4711
        workers[name] = WorkerStatus(worker=name, state=state, ready=ready, code=code, pid=pid)
        self.status(node.name)

    def progress(self, job: str, rank: int, at: float | None = None) -> None:
        """A rank tells of progress, now or at that time."""
        known = self.cell.job(job)
        part = known.slice_of(rank)
        node = self.fleet.node_at(part.rack, part.nodes[rank - part.first_rank])
        name = known.worker(rank)
        self.told[node.name][name] = WorkerStatus(
            worker=name,
            state=WorkerState.RUNNING,
            ready=True,
            progress_at=self.fleet.time if at is None else at,
        )
        self.status(node.name)

    def idle(self, job: str, since: float | None) -> None:
        """The GPUs of rank 0 are idle since then, by its node's clock, or in use."""
        known = self.cell.job(job)
        part = known.slice_of(0)
        node = self.fleet.node_at(part.rack, part.nodes[0])
        name = known.worker(0)
        self.told[node.name][name] = replace(self.told[node.name][name], idle_since=since)
        self.status(node.name)

    def status(self, node: NodeId) -> None:
        """A node writes its last value, in the session that was admitted or in a newer one."""
        place = self.fleet.places[node]
        known = self.fleet.node(node)
        assert known.session is not None
        status = NodeStatus(
            node=node,
            rack=RackId(self.fleet.rack_name(place.rack)),
            session=self.sessions.get(node, known.session),
            boot=known.boot,
            n=1,
            hardware=hardware(node),
            workers=tuple(self.told.get(node, {}).values()),
        )
        event = StatusSeen(
            **self.times, id=MessageId(f"s-{node}"), at=self.fleet.time, status=status
        )
        assert self.give(event) == []

    def all_up(self, job: str) -> None:
        """Every rank runs and is ready."""
        for rank in self.cell.job(job).rank_numbers():
            self.worker(job, rank, WorkerState.RUNNING)

    def exit_all(self, job: str, code: int = 0) -> None:
        """Every rank ends."""
        for rank in range(self.cell.job(job).ranks):
            self.worker(job, rank, WorkerState.EXITED, code)

    def started(self, job: str, **spec: Any) -> None:
        """A job that runs."""
        self.submit(job, **spec)
        self.run()
        self.all_up(job)
        self.run()
        assert self.cell.job(job).state == "running"


def desk(cell: Cell) -> Desk:
    """A placer that has just started."""
    return Desk(cell=cell)


def failures(entries: list[Entry]) -> list[tuple[int, str]]:
    """Rank and code of each verdict on a worker."""
    return [(one.rank, one.reason.code) for one in entries if isinstance(one, WorkerFailed)]


def ends(entries: list[Entry]) -> list[tuple[str, str]]:
    """Type and code of what ends a job or sends it back."""
    return [
        (one.TYPE, one.reason.code) for one in entries if isinstance(one, JobFailed | JobRequeued)
    ]
