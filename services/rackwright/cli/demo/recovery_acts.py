"""Acts (a) to (e): placement by rack, and the recovery ladder with real processes."""

import signal

from rackwright.cli.demo.board import identity, lives
from rackwright.cli.demo.scene import Scene
from rackwright.core.racks import spare_target
from rackwright.host.clock import boottime
from rackwright.wire.entries.slice import SliceMoved, SliceSwapped
from rackwright.wire.ids import NodeId, WorkerId

JOB = "train"
FALLEN = "79, pid=4711, name=python, GPU has fallen off the bus."


def _spares(scene: Scene, rack: int) -> int:
    return scene.watched.fleet.racks[rack].usable.bit_count()


async def place(scene: Scene) -> None:
    """(a) 32 nodes land as two slices of 16 on two racks, each with two spares."""
    tell = scene.tell
    tell.act("a", "a 32-node job lands as two 16-node slices on two racks")
    began = boottime()
    await scene.submit(scene.spec(JOB, 32))
    job = await scene.running(JOB)
    placed = next(
        commit
        for commit in scene.watched.commits
        if commit.type == "job.placed" and commit.entries[0].job == JOB  # type: ignore[attr-defined]
    )
    tell.say("job.placed", placed.mono - began)
    tell.say(f"all {job.ranks} worker processes run", boottime() - began)
    racks = [part.rack for part in job.slices]
    for part in job.slices:
        name = scene.watched.fleet.rack_name(part.rack)
        spares = _spares(scene, part.rack)
        tell.say(f"slice {part.index}: {part.size} nodes of rack {name}, {spares} spares beside it")
    tell.claim("two slices of 16 nodes", [part.size for part in job.slices] == [16, 16])
    tell.claim("each on a rack of its own", len(set(racks)) == 2)
    policy = scene.watched.fleet.policy
    kept = all(_spares(scene, rack) >= spare_target(policy, 16) for rack in racks)
    tell.claim("two spares beside each", kept)


async def _heal(
    scene: Scene, broken: list[NodeId], untouched: dict[WorkerId, int]
) -> tuple[SliceSwapped | SliceMoved, float]:
    """Break nodes at once, wait for the recovery and its processes; tell what it took."""
    since = scene.now()
    before = {worker: identity(pid) for worker, pid in untouched.items()}
    at = 0.0
    for node in broken:
        at = await scene.xid(node, FALLEN)
    commit, entry = await scene.recovery(JOB, since)
    assert isinstance(entry, SliceSwapped | SliceMoved)
    scene.tell.say(f"fault written -> {entry.TYPE} committed", commit.mono - at)
    await scene.running(JOB)
    scene.tell.say("fault written -> replacement processes run", boottime() - at)
    now = scene.board.pids(JOB)
    same = all(
        worker in now and identity(now[worker]) == process for worker, process in before.items()
    )
    scene.tell.claim(f"the other {len(before)} processes are the same (pid and start time)", same)
    return entry, at


async def swap_one(scene: Scene) -> None:
    """(b) One Xid 79: a spare of the same rack takes the rank, nobody else notices."""
    scene.tell.act("b", "Xid 79 in the kernel log of one node: swap inside the rack")
    part = scene.job(JOB).slices[0]
    node = scene.nodes_of(JOB, 0)[5]
    lost = part.worker(scene.job(JOB).id, part.first_rank + 5)
    others = {w: p for w, p in scene.board.pids(JOB).items() if w != lost}
    entry, _ = await _heal(scene, [node], others)
    after = scene.job(JOB).slices[0]
    scene.tell.claim("by a swap, not by a restart", isinstance(entry, SliceSwapped))
    scene.tell.claim("in the same rack", after.rack == part.rack)
    scene.tell.claim("onto another node", node not in scene.nodes_of(JOB, 0))
    scene.tell.claim("retry budget untouched", scene.job(JOB).retries == 0)


async def swap_two(scene: Scene) -> None:
    """(c) Two nodes of one rack at once: both spares are used."""
    scene.tell.act("c", "two nodes of one rack at once")
    job = scene.job(JOB)
    part = job.slices[1]
    nodes = scene.nodes_of(JOB, 1)[3:5]
    lost = {part.worker(job.id, part.first_rank + turn) for turn in (3, 4)}
    others = {w: p for w, p in scene.board.pids(JOB).items() if w not in lost}
    await _heal(scene, nodes, others)
    after = scene.job(JOB).slices[1]
    scene.tell.claim("both were swapped in the same rack", after.rack == part.rack)
    left = not set(nodes) & set(scene.nodes_of(JOB, 1))
    scene.tell.claim("neither bad node is used again", left)
    scene.tell.claim("the rack has no spare left", _spares(scene, part.rack) == 0)


async def move_slice(scene: Scene) -> None:
    """(d) No spare left: only that slice moves."""
    scene.tell.act("d", "spares used up: only that slice moves to another rack")
    job = scene.job(JOB)
    part = job.slices[1]
    pids = scene.board.pids(JOB)
    staying = {w: p for w, p in pids.items() if int(w.split("/")[1]) < 16}
    old = {w: p for w, p in pids.items() if w not in staying}
    entry, _ = await _heal(scene, [scene.nodes_of(JOB, 1)[7]], staying)
    after = scene.job(JOB).slices
    scene.tell.claim("by a move of slice 1", isinstance(entry, SliceMoved) and entry.index == 1)
    scene.tell.claim("to another rack", after[1].rack != part.rack)
    scene.tell.claim("slice 0 stayed where it was", after[0].mask == job.slices[0].mask)
    left = [pid for worker, pid in old.items() if lives(pid)]
    scene.tell.claim("no process of the old slice is left", not left)


async def kill_agent(scene: Scene) -> None:
    """(e) An agent dies for good: its worker is fenced, then replaced. Another one restarts."""
    tell = scene.tell
    fence = scene.watched.fleet.policy.fence_after_s
    tell.act("e", f"an agent killed with -9 (lease {fence:g} s here, 30 s by default)")
    node = _solo(scene, 0)
    worker, pid = _worker_on(scene, node)
    process = identity(pid)
    kept = scene.stack.agent_of(node)
    kept.hold()
    since = scene.now()
    killed = boottime()
    kept.kill(signal.SIGKILL)
    tell.say(f"agent of {node} killed; its worker {worker} still runs: {lives(pid)}")
    await scene.entry(lambda one: one.TYPE == "node.failed", since)
    gone = identity(pid) != process
    tell.say("worker fenced by its supervisor, node.failed", boottime() - killed)
    tell.claim("the old worker was gone before anybody replaced it", gone)
    await scene.recovery(JOB, since)
    await scene.running(JOB)
    tell.say("replacement runs", boottime() - killed)
    kept.release()
    await _restart(scene)


async def _restart(scene: Scene) -> None:
    node = _solo(scene, 1)
    worker, pid = _worker_on(scene, node)
    process = identity(pid)
    session = scene.board.nodes[node].session
    scene.stack.agent_of(node).kill(signal.SIGKILL)
    await scene.board.until(lambda board: board.nodes[node].session != session)
    await scene.watched.until(
        lambda fleet: fleet.node(node).session == scene.board.nodes[node].session
    )
    scene.tell.say(f"agent of {node} killed and started again by its keeper")
    status = scene.board.worker(worker)
    same = status is not None and status.pid is not None and identity(status.pid) == process
    scene.tell.claim("its worker kept its process", same)


def _solo(scene: Scene, index: int) -> NodeId:
    """A node of this slice (or of another one) whose agent is a process of its own."""
    slices = (index, *(part.index for part in scene.job(JOB).slices))
    for node in (node for one in slices for node in scene.nodes_of(JOB, one)):
        if node in scene.stack.options.solo:
            return node
    raise RuntimeError(f"{JOB} has no node with an agent of its own")


def _worker_on(scene: Scene, node: NodeId) -> tuple[WorkerId, int]:
    for one in scene.board.nodes[node].workers:
        if one.pid is not None and one.worker.startswith(f"{JOB}/"):
            return one.worker, one.pid
    raise RuntimeError(f"no worker of {JOB} on {node}")
