"""Owners and operators of the simulated cell: what they wish, at good moments and bad ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from rackwright.bus.streams import Kind
from rackwright.sim.paths import WindyPath
from rackwright.wire.codec import encode
from rackwright.wire.ids import JobId, NodeId, Owner, QueueName
from rackwright.wire.jobs import Checkpoint, Group, JobClass, JobSpec, OnLostLease, TopologyNeed
from rackwright.wire.message import Body
from rackwright.wire.policy import Automation
from rackwright.wire.wishes import (
    Cancel,
    Cordon,
    DefineRacks,
    Drain,
    HoldRack,
    Pause,
    ReleaseRack,
    Repaired,
    ScheduleMaintenance,
    SetPolicy,
    Submit,
    Swap,
    Uncordon,
    Unpause,
)
from tests.simulation.knobs import LONG, PROMISED
from tests.simulation.world import World

OWNERS = (Owner("ann"), Owner("bob"))
ADMIN = Owner("root")


class Users:
    """Submit `knobs.jobs` jobs over the story; the rest is asked for by the nemesis."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = Random(f"users {world.knobs.seed}")
        self.path = WindyPath(world.engine, world.knobs.weather, world.happened)
        self.submitted: list[Submit] = []
        self.wishes = 0

    def wish(self, owner: Owner, wish: Body) -> None:
        """Publish it, bare or in an envelope."""
        world = self.world
        self.wishes += 1
        data = encode(wish) if self.wishes % 2 else world.envelope(owner, wish)
        subject = world.subjects.wish(owner, wish.TYPE)
        self.path.pipe().push(world.store.append, Kind.WISH, subject, data)
        world.tell(f"{owner} wishes {wish.TYPE} {getattr(wish, 'job', getattr(wish, 'node', ''))}")

    def begin(self) -> None:
        """Racks are defined, jobs will come."""
        world = self.world
        specs = tuple(world.add_rack() for _ in range(world.knobs.racks))
        self.wish(ADMIN, DefineRacks(racks=specs))
        for number in range(world.knobs.jobs):
            at = 1.0 + self.random.random() * world.knobs.chaos_s * 0.8
            world.engine.later(at, self._submit, number)

    def _submit(self, number: int) -> None:
        wish = Submit(job=JobId(f"j{number}"), spec=self._spec(number))
        self.submitted.append(wish)
        self.wish(self.random.choice(OWNERS), wish)

    def _spec(self, number: int) -> JobSpec:
        random, knobs = self.random, self.world.knobs
        size: dict[str, object] = {"nodes": random.choice((1, 1, 2, 3, 4, 4, 6, 8))}
        if random.random() < 0.25:
            size = {"gpus": random.randint(1, max(1, knobs.gpus - 1))}
        elif random.random() < 0.1:
            lead, work = Group(name=JobId("lead"), nodes=1), Group(name=JobId("work"), nodes=2)
            size = {"groups": (lead, work)}
        size = self._elastic(number, size)
        restartable = random.random() < 0.85
        return JobSpec(
            name=JobId(f"j{number}"),
            topology=random.choice(tuple(TopologyNeed)),
            job_class=random.choice(
                (JobClass.BATCH, JobClass.BATCH, JobClass.INTERACTIVE, JobClass.SERVICE)
            ),
            priority=random.choice((20, 50, 50, 80)),
            restartable=restartable,
            preemptible=random.random() < 0.8,
            movable=random.random() < 0.3,
            retry_budget=random.choice((0, 1, 3)),
            checkpoint=Checkpoint(
                interval_s=random.choice((None, 0.5, 2.0)),
                restart_s=1.0,
                on_notice_s=random.choice((None, 0.5)),
            ),
            on_lost_lease=OnLostLease.RUN
            if random.random() < knobs.leaseless
            else OnLostLease.STOP,
            grace_s=random.choice((0.0, 0.5, 2.0)),
            keep_on_failure=number % 4 == 3,
            prefer_previous=number % 3 == 1,
            queue=PROMISED if number % 3 == 0 else QueueName("default"),
            pretend_s=self._length(number, random.choice((0.2, 2.0, 5.0, 9.0))),
            **size,  # type: ignore[arg-type]
        )

    def _length(self, number: int, drawn: float) -> float:
        """Where nodes are silent for long, some work lasts longer than they are waited for."""
        knobs = self.world.knobs
        random = Random(f"length {knobs.seed} {number}")
        return 25.0 if LONG & knobs.rates.keys() and random.random() < 0.5 else drawn

    def _elastic(self, number: int, size: dict[str, object]) -> dict[str, object]:
        """Some goes on with fewer slices, some has no GPUs, and some groups have replicas."""
        random = Random(f"elastic {self.world.knobs.seed} {number}")
        if isinstance(size.get("nodes"), int) and random.random() < 0.4:
            return size | {"min_slices": 1, "slice_nodes": random.choice((1, 2))}
        if "gpus" in size and random.random() < 0.4:
            return {"gpus": 0}  # refused if it may not be killed
        if "groups" in size and random.random() < 0.6:
            lead = Group(name=JobId("lead"), nodes=1)
            work = Group(name=JobId("work"), nodes=2, replicas=2)
            return {"groups": (lead, work)}
        return size

    # At bad moments

    def repeat(self) -> None:
        """A submit comes again, as it was or with another specification."""
        if self.submitted:
            wish = self.random.choice(self.submitted)
            other = self._spec(99)
            spec = wish.spec if self.random.random() < 0.7 else other
            self.wish(self.random.choice(OWNERS), Submit(job=wish.job, spec=spec))

    def cancel(self) -> None:
        """A job is cancelled, by its owner or not, perhaps before it was submitted."""
        job = JobId(f"j{self.random.randint(0, self.world.knobs.jobs)}")
        self.wish(self.random.choice((*OWNERS, ADMIN)), Cancel(job=job))

    def node(self) -> NodeId:
        """Any node."""
        return self.random.choice(list(self.world.nodes))

    def drain(self) -> None:
        """A node is drained, and most times let in again later."""
        self._order(Drain(node=self.node()))

    def cordon(self) -> None:
        """A node is cordoned, and most times let in again later."""
        self._order(Cordon(node=self.node()))

    def _order(self, wish: Drain | Cordon) -> None:
        self.wish(ADMIN, wish)
        if self.random.random() < 0.7:
            after = self.random.uniform(0.1, 8.0)
            self.world.engine.later(after, self.wish, ADMIN, Uncordon(node=wish.node))

    def swap(self) -> None:
        """An owner says that a node is slow."""
        if self.submitted:
            job = self.random.choice(self.submitted).job
            self.wish(self.random.choice(OWNERS), Swap(job=job, rank=self.random.randint(0, 3)))

    def hold(self) -> None:
        """An operator holds a rack for a while."""
        rack = self.random.choice(self.world.racks).rack
        self.wish(ADMIN, HoldRack(rack=rack, for_s=self.random.uniform(1.0, 10.0)))
        if self.random.random() < 0.5:
            self.world.engine.later(2.0, self.wish, ADMIN, ReleaseRack(rack=rack))

    def maintain(self) -> None:
        """A rack will be away."""
        rack, now = self.random.choice(self.world.racks).rack, self.world.engine.now
        begin = now + self.random.uniform(0.0, 5.0)
        self.wish(
            ADMIN,
            ScheduleMaintenance(racks=(rack,), begin=begin, end=begin + 6.0, notice_s=2.0),
        )

    def pause(self) -> None:
        """An automation is stopped for a while."""
        automation = self.random.choice(tuple(Automation)[:4])  # not all of them
        self.wish(ADMIN, Pause(automation=automation, for_s=self.random.uniform(1.0, 8.0)))
        if self.random.random() < 0.5:
            self.world.engine.later(2.0, self.wish, ADMIN, Unpause(automation=automation))

    def read_only(self) -> None:
        """The whole cell decides nothing for a while."""
        self.wish(ADMIN, Pause(automation=Automation.ALL, for_s=self.random.uniform(1.0, 6.0)))
        if self.random.random() < 0.5:
            self.world.engine.later(2.0, self.wish, ADMIN, Unpause(automation=Automation.ALL))

    def policy(self) -> None:
        """The settings are set again; the lease may become shorter or longer."""
        fence = self.random.choice((3.5, 4.0, 5.0))
        slices = self.random.choice((3, 4, 5))
        if self.world.knobs.policy.alone_s:
            fence += 1.0
        policy = replace(self.world.knobs.policy, fence_after_s=fence, slice_nodes=slices)
        self.wish(ADMIN, SetPolicy(policy=policy))

    def repair(self, node: NodeId | None = None) -> None:
        """Somebody says that a node is repaired."""
        self.wish(ADMIN, Repaired(node=node or self.node()))

    def define(self) -> None:
        """A rack is added to the cell."""
        if len(self.world.racks) < 5:
            self.wish(ADMIN, DefineRacks(racks=(self.world.add_rack(),)))
