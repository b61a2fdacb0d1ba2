"""Plays one seed: first the faults, with no harm done at any step; then the cell is healed.

It must come to rest within a bound of virtual time, or say why it does not.
"""

from __future__ import annotations

import gc
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import structlog

from rackwright.bus.streams import Kind
from rackwright.core import fold as folding
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState
from rackwright.core.policy.cut import whole_slice
from rackwright.core.policy.probation import in_repair
from rackwright.core.racks import Node
from rackwright.dispatcher import machine as dispatcher
from rackwright.host import snapshots
from rackwright.host.errors import HostError
from rackwright.sim.paths import Weather
from rackwright.wire.catalog import ANSWERS, Party
from rackwright.wire.codec import Unreadable, decode_wish
from rackwright.wire.ids import JobId
from rackwright.wire.nodes import RackFitness
from rackwright.wire.policy import Automation
from rackwright.wire.subjects import parse_wish
from rackwright.wire.wishes import ReleaseRack, Submit, Uncordon, Unpause
from tests.simulation.knobs import Knobs
from tests.simulation.members import CELL, UPGRADED, Violated
from tests.simulation.nemesis import Nemesis
from tests.simulation.users import ADMIN, Users
from tests.simulation.world import World

REST_S = 150.0  # virtual seconds after the last fault within which everything comes to rest
LOOK_S = 1.0
REPAIR_S = 3.0
BROKEN = (AssertionError, HostError, LookupError, ValueError, TypeError, RuntimeError)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of a seed. `violation` is empty when everything held."""

    seed: int
    violation: str = ""
    steps: int = 0
    entries: int = 0
    commits: int = 0
    voids: int = 0
    refused: int = 0
    virtual_s: float = 0.0
    digest: str = ""
    starts: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)


@contextmanager
def quickened() -> Iterator[None]:
    """Snapshots every few virtual seconds, a ledger that is trimmed soon behind them, and software
    that knows one fold version more than ledgers begin with."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        with (
            patch.multiple(dispatcher, SNAPSHOT_S=4.0, COPY_S=2.0, KEEP_TAIL=5),
            patch.object(folding, "FOLD_VERSION", UPGRADED),
            patch.object(snapshots, "FOLD_VERSION", UPGRADED),
        ):
            yield
    finally:
        structlog.reset_defaults()


def play(knobs: Knobs) -> Outcome:
    """Live through the world of these knobs."""
    outcome = Outcome(seed=knobs.seed)
    with quickened():
        world = World(knobs)
        gc.disable()  # a story is short, and its values have few cycles
        try:
            _live(world)
        except BROKEN as error:
            outcome.violation = _said(error)
        finally:
            gc.enable()
    outcome.steps = world.engine.handled
    outcome.commits, outcome.entries = world.audit.commits, world.audit.entries
    outcome.voids, outcome.refused = world.audit.voids, world.refused
    outcome.counts = dict(world.audit.counts)
    outcome.virtual_s = world.engine.now - 1e6
    outcome.faults, outcome.story = world.faults, world.story
    outcome.starts = world.living.starts
    world.hash.update(repr((outcome.steps, sorted(world.faults.items()))).encode())
    outcome.digest = world.hash.hexdigest()
    return outcome


def _said(error: BaseException) -> str:
    if isinstance(error, Violated):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{f.filename.rpartition('/')[2]}:{f.lineno}" for f in frames[:-4:-1])
    return f"{type(error).__name__}: {error} ({where})"


def _live(world: World) -> None:
    users = Users(world)
    nemesis = Nemesis(world, users)
    users.begin()
    nemesis.begin()
    begun = world.engine.now
    world.run(begun + world.knobs.chaos_s + 1.0)
    _heal(world, users, nemesis)
    until = world.engine.now + REST_S
    restless = ["nothing was looked at"]
    repaired = 0.0
    while restless and world.engine.now < until:
        if world.engine.now >= repaired + REPAIR_S:
            repaired = world.engine.now
            _repair(world, users, nemesis)
        world.run(world.engine.now + LOOK_S)
        restless = list(unrest(world, users))
    if restless:
        raise Violated(f"not at rest after {REST_S:.0f} s: {'; '.join(restless[:4])}")
    world.check_folds()


def _heal(world: World, users: Users, nemesis: Nemesis) -> None:
    """No fault any more: everything that was taken is given back."""
    world.tell("-- healed")
    world.calm = True
    calm = Weather(delay_s=0.005)
    members = [path for member in world.members for path in (member.path, member.core)]
    for path in [*members, users.path, *(node.path for node in world.nodes.values())]:
        path.weather = calm
        path.mend()
    for member in world.members:
        member.behind = False
        member.upgrade()
        if member.process is not None:
            member.process.resume()
    world.count_copies()
    for node in world.nodes.values():
        nemesis.give_back(node)
    for name in world.nodes:
        users.wish(ADMIN, Uncordon(node=name))
    for spec in world.racks:
        users.wish(ADMIN, ReleaseRack(rack=spec.rack))
    for automation in reversed(Automation):  # all of them first: that lets the others be ended
        users.wish(ADMIN, Unpause(automation=automation))


def _repair(world: World, users: Users, nemesis: Nemesis) -> None:
    """Whatever a repair is asked for is repaired: rebooted, and said so. What was refused because
    the cell was read only then is wished for again."""
    fleet = world.ledger.fleet
    for automation in sorted(one for one, until in fleet.paused.items() if until > fleet.time):
        users.wish(ADMIN, Unpause(automation=automation))
    for rack in fleet.racks.values():
        if rack.held_until > fleet.time:
            users.wish(ADMIN, ReleaseRack(rack=rack.spec.rack))
        for node in rack.nodes:
            if in_repair(node) and _idle(world.ledger.fleet, node):
                host = world.nodes[node.name]
                host.power_off()
                nemesis.boot(host)
                users.repair(node.name)


def _idle(fleet: Fleet, node: Node) -> bool:
    place = fleet.places[node.name]
    return not list(fleet.racks[place.rack].tenants_at(place.node))


def unrest(world: World, users: Users) -> Iterator[str]:
    """Why the cell is not at rest."""
    fleet = world.ledger.fleet
    for name, job in fleet.jobs.items():
        why = _waits(fleet, job)
        if why is not None:
            yield f"{name} {why}"
    for submit in users.submitted:
        if not known_job(fleet, submit.job) and submit.job not in world.turned_away:
            yield f"{submit.job} was submitted and is not known"
    if fleet.leaving:
        yield f"{min(fleet.leaving)} is still leaving"
    if fleet.plans:
        yield f"plan {min(fleet.plans)} is not over"
    for worker in sorted(world.living.workers):
        if JobId(worker.partition("/")[0]) not in fleet.jobs:
            yield f"{worker} lives and its job does not"
    yield from _nodes(fleet)
    yield from _wishes(world)


def _waits(fleet: Fleet, job: Job) -> str | None:
    """Why a job is not where it may stay: ended, suspended, or blocked for a true reason."""
    if job.state is JobState.SUSPENDED:
        return None if job.reason is not None else "is suspended and nobody says why"
    if job.state is not JobState.QUEUED:
        return f"is {job.state}"
    if job.blocked is None:
        return "waits and nobody says why"
    if fits(fleet, job):
        return f"is blocked by {job.blocked.code} and there is room"
    return None


def fits(fleet: Fleet, job: Job) -> bool:
    """Would it fit by counting nodes alone? Only asked when the others are at rest."""
    spec = job.spec
    if any(other.slices for other in fleet.jobs.values()):
        return False
    if spec.gpus == 0:  # it spoils no rack that could take a full slice
        whole = whole_slice(fleet.policy, fleet.topology)
        return any(0 < rack.usable.bit_count() < whole for rack in fleet.racks.values())
    if spec.nodes is None:
        return spec.gpus is not None and any(rack.usable for rack in fleet.racks.values())
    size = min(spec.slice_nodes or fleet.policy.slice_nodes, spec.nodes)
    whole = -(-spec.nodes // size)
    return sum(rack.usable.bit_count() // size for rack in fleet.racks.values()) >= whole


def _nodes(fleet: Fleet) -> Iterator[str]:
    for rack in fleet.racks.values():
        if rack.isolated or rack.fitness is not RackFitness.GOOD:
            yield f"{rack.spec.rack} is {rack.fitness} or isolated"
        if rack.held_until > fleet.time:
            yield f"{rack.spec.rack} is held"
        for node in rack.nodes:
            if node.session is None or node.suspected or in_repair(node):
                yield f"{node.name} is not in service"


def _wishes(world: World) -> Iterator[str]:
    """Each wish that can be read is answered by the service that answers its type."""
    fleet = world.ledger.fleet
    for stored in world.store.after(Kind.WISH, 0):
        type_name = parse_wish(CELL, stored.subject).type_name
        known = fleet.answers.get(ANSWERS.get(type_name, Party.PLACER))
        if known is None or stored.seq not in known:
            try:
                wish, _ = decode_wish(type_name, stored.data, cell=CELL)
            except Unreadable:
                continue
            if not (isinstance(wish, Submit) and known_job(fleet, wish.job)):  # twice is once
                yield f"wish {stored.seq} is not answered"


def known_job(fleet: Fleet, job: JobId) -> bool:
    """Does it live, or has it ended a moment ago?"""
    return job in fleet.jobs or job in fleet.tombstones
