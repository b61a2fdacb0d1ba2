"""Acts (f) to (h): noise, defragmentation, and every service killed in turn."""

import signal

from rackwright.cli.demo.board import identity
from rackwright.cli.demo.scene import Scene, Unplayable
from rackwright.cli.stack import SERVICES
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import JobState
from rackwright.host.clock import boottime
from rackwright.wire.entries.slice import DefragPlanned
from rackwright.wire.ids import JobId, NodeId, RackId
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.nodes import Fitness
from rackwright.wire.wishes import Cancel

STORM_NODES = 18
ECHO_GPUS = 60
KILLED = "45, pid=31337, name=python, Ch 00000008"
LINK_DOWN = (
    "149, NETIR_LINK_DOWN Fatal XC0 i0 Link 14 "
    "(0x00000000 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
)
ECHO = (
    "145, RLW_SRC_TRACK Nonfatal XC0 i0 Link {link} "
    "(0x00000000 0x00000004 0x00000000 0x00000000 0x00000000 0x00000000)"
)


def _empty_rack(fleet: Fleet) -> RackId:
    """A rack that nobody uses."""
    for number in sorted(fleet.racks):
        rack = fleet.racks[number]
        if not rack.tenancies and rack.usable.bit_count() == len(rack.nodes):
            return rack.spec.rack
    raise Unplayable("no rack is empty")


def _out(fleet: Fleet) -> set[NodeId]:
    return {
        node.name
        for rack in fleet.racks.values()
        for node in rack.nodes
        if node.fitness is not Fitness.FULL
    }


async def storm(scene: Scene) -> None:
    """(f) Noise from everywhere and one true culprit: exactly one node leaves."""
    tell = scene.tell
    tell.act("f", f"Xid 45 on {STORM_NODES} nodes, then one Xid 149 with {ECHO_GPUS} echoes")
    rack = scene.watched.fleet.rack(_empty_rack(scene.watched.fleet))
    nodes = [node.name for node in rack.nodes]
    before = _out(scene.watched.fleet)
    since = scene.now()
    for node in nodes[:STORM_NODES]:
        for _ in range(10):
            await scene.xid(node, KILLED)
    culprit = nodes[4]
    others = [(node, gpu) for node in nodes if node != culprit for gpu in range(4)][:ECHO_GPUS]
    at = await scene.xid(culprit, LINK_DOWN)
    for turn, (node, gpu) in enumerate(others):
        await scene.xid(node, ECHO.format(link=turn % 18), gpu)
    commit, entry = await scene.entry(lambda one: one.TYPE == "node.unfit", since)
    tell.say(f"culprit found: {entry.node}", commit.mono - at)  # type: ignore[attr-defined]
    await _quiet(scene)
    out = _out(scene.watched.fleet) - before
    tell.say(f"out of service after it: {', '.join(sorted(out))}")
    tell.claim("exactly one node leaves service, the culprit", out == {culprit})


async def _quiet(scene: Scene) -> None:
    """Wait until every symptom's window is over, by two ticks of ledger time past it."""
    window = scene.watched.fleet.policy.symptom_window_s
    end = scene.watched.fleet.time + window + 1.0
    await scene.watched.until(lambda fleet: fleet.time > end)


async def defragment(scene: Scene) -> None:
    """(g) A rack's worth of nodes is free, but scattered."""
    tell = scene.tell
    tell.act("g", "a 16-node job is blocked by topology: a rack is emptied for it")
    target = await _scatter(scene)
    before = scene.board.pids("notebook")
    notebook = {worker: identity(pid) for worker, pid in before.items()}
    victims = {name: scene.board.pids(name) for name in ("fill-1", "fill-2")}
    since = scene.now()
    await scene.submit(scene.spec("big", 16, priority=60))
    commit, entry = await scene.entry(lambda one: one.TYPE == "job.blocked", since)
    reason = entry.reason  # type: ignore[attr-defined]
    tell.say(f"big is blocked: {reason.code} {reason.numbers}")
    tell.claim("the cause is movable topology", reason.code == "topology.movable")
    planned, plan = await scene.entry(lambda one: isinstance(one, DefragPlanned), since)
    assert isinstance(plan, DefragPlanned)
    names = ", ".join(victim.job for victim in plan.victims)
    cost, benefit = plan.cost_gpu_h, plan.benefit_gpu_h
    tell.say(f"plan: move {names}; cost {cost:.2f} GPU-h, benefit {benefit:.2f} GPU-h")
    await scene.running("big")
    tell.say("blocked -> big runs", boottime() - commit.mono)
    tell.say("plan -> big runs (notice included)", boottime() - planned.mono)
    big = scene.job("big").slices[0]
    tell.claim("in the rack that was emptied", scene.watched.fleet.rack_name(big.rack) == target)
    for name, old in victims.items():
        job = await scene.running(name)
        tell.claim(f"{name} runs in another rack", job.slices[0].rack != big.rack)
        tell.claim(f"{name} went on from its checkpoint", _went_on(scene, name))
        tell.claim(f"no old process of {name} is left", not set(old) & set(scene.board.pids(name)))
    after = {worker: identity(pid) for worker, pid in scene.board.pids("notebook").items()}
    tell.claim("the interactive job was not touched", bool(notebook) and after == notebook)


def _broken_rack(fleet: Fleet) -> int:
    """Free nodes of the rack that is not whole any more; 0 while it is not trusted again."""
    for _, rack in sorted(fleet.racks.items()):
        if not rack.tenancies and 0 < rack.usable.bit_count() < 16:
            return rack.usable.bit_count()
    return 0


async def _scatter(scene: Scene) -> RackId:
    """Small work in the last whole rack: fill the broken one first, so that it goes there."""
    await scene.watched.until(lambda now: _broken_rack(now) > 0)
    filler = _broken_rack(scene.watched.fleet)
    await scene.submit(scene.spec("filler", filler))
    await scene.running("filler")
    for name in ("fill-1", "fill-2"):
        await scene.submit(
            scene.spec(name, 1, env=_stepping(scene), exclude_nodes=_beside_train(scene))
        )
        await scene.running(name)
    await scene.interactive("notebook", exclude_nodes=_beside_train(scene))
    await scene.running("notebook")
    await scene.cell.wish(Cancel(job=JobId("filler")))
    await scene.watched.until(lambda now: JobId("filler") not in now.jobs)
    rack = scene.watched.fleet.rack_name(scene.job("notebook").slices[0].rack)
    free = scene.watched.fleet.rack(rack).usable.bit_count()
    scene.tell.say(f"{filler} nodes are free in one rack and {free} in {rack}: no 16 in any")
    return rack


def _beside_train(scene: Scene) -> tuple[NodeId, ...]:
    """Nodes of the racks that the large job is in: its spares could be lent to small work."""
    fleet = scene.watched.fleet
    racks = {part.rack for part in scene.job("train").slices} if "train" in fleet.jobs else set()
    return tuple(node.name for rack in sorted(racks) for node in fleet.racks[rack].nodes)


def _stepping(scene: Scene) -> dict[str, str]:
    return {"DEMO_SAVED": str(scene.saved), "DEMO_STEP_S": "0.2"}


def _went_on(scene: Scene, name: str) -> bool:
    """Its second start began with the count that the first one saved, which is above 0."""
    starts = (scene.saved / f"{name}.0.starts").read_text(encoding="ascii").split()
    return len(starts) == 2 and starts[0] == "0" and int(starts[1]) > 0


async def kill_services(scene: Scene) -> None:
    """(h) Every service is killed once while jobs come and go: nothing lost, nothing twice."""
    tell = scene.tell
    names = [f"{service}-0" for service in SERVICES]
    tell.act("h", f"each of {len(names)} services killed with -9 in mid-work and started again")
    began = boottime()
    jobs: list[str] = []
    for service in names:
        jobs += await _burst(scene, service)
        kept = scene.stack.kept[service]
        starts = kept.starts
        kept.kill(signal.SIGKILL)
        jobs += await _burst(scene, f"{service}-down")
        killed = boottime()
        await kept.running()
        await scene.stack.answers(service)
        took = boottime() - killed
        tell.say(f"{service} killed; start {kept.starts} (was {starts}) is ready", took)
    await scene.watched.until(lambda fleet: all(JobId(name) in fleet.tombstones for name in jobs))
    tell.say(f"{len(jobs)} jobs submitted meanwhile have ended", boottime() - began)
    fleet = scene.watched.fleet
    done = [fleet.tombstones[JobId(name)].state is JobState.FINISHED for name in jobs]
    tell.claim("every one of them finished", all(done))
    ran = [_ran(scene, name) for name in jobs]
    tell.claim("every one of them ran once", ran == [1] * len(jobs))


async def _burst(scene: Scene, tag: str) -> list[str]:
    """Publish two short jobs without waiting for an answer: their placer may be down."""
    names = [f"{tag}-{turn}" for turn in range(2)]
    for name in names:
        env = {"DEMO_SAVED": str(scene.saved), "DEMO_STEPS": "1", "DEMO_STEP_S": "0.1"}
        spec: JobSpec = scene.spec(name, 1, env=env, job_class=JobClass.BATCH)
        await scene.publish(spec)
    return names


def _ran(scene: Scene, name: str) -> int:
    path = scene.saved / f"{name}.0.starts"
    return len(path.read_text(encoding="ascii").split()) if path.exists() else 0
