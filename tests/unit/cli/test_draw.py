"""Pictures of a small cell, as they are printed."""

import re

import pytest

from rackwright.cli.draw_jobs import draw_job, draw_jobs, nodes_text
from rackwright.cli.draw_metrics import TITLES
from rackwright.cli.draw_node import draw_node
from rackwright.cli.draw_racks import draw_racks
from rackwright.cli.policy import draw_policy
from rackwright.cli.show import ago
from rackwright.cli.stats import draw_stats
from rackwright.gateway import asked
from rackwright.gateway.answers.cell import policy, stats
from rackwright.gateway.answers.jobs import job, jobs
from rackwright.gateway.answers.nodes import node, racks
from rackwright.wire.entries.cell import AutomationPaused
from rackwright.wire.entries.job import JobBlocked, JobPinned, SlicePlacement
from rackwright.wire.entries.node import NodeCordoned, RackHeld
from rackwright.wire.entries.slice import NodeSwap, SliceSwapped
from rackwright.wire.ids import JobId, NodeId, Owner, RackId, WorkerId
from rackwright.wire.jobs import Checkpoint, Group, JobClass, JobSpec
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.reasons import Reason, Rung, RungTaken
from rackwright.wire.signals import WorkerState, WorkerStatus
from tests.support.fleets import hardware
from tests.unit.cli.drawn import drawn
from tests.unit.gateway.storied import Storied, storied

CLOCK = re.compile(r"\d\d:\d\d:\d\d\.\d\d\d")


def small() -> Storied:
    """A job across two racks, small work, a queued job, and some trouble."""
    made = storied(3, nodes=6)
    made.sit("train", "r0", range(4))
    made.sit("lent", "r0", [5], lent=True)
    made.sit("one", "r1", [0], gpus=0b11)
    made.sit("two", "r1", [0], gpus=0b100)
    made.queue("big", JobSpec(name=JobId("big"), nodes=6, slice_nodes=6))
    made.add(JobBlocked(job=JobId("big"), reason=Reason(code="held")))
    made.unfit("r1-n02")
    made.fail("r1-n03")
    made.add(NodeCordoned(node=NodeId("r1-n04"), drain=True, by=Owner("ann")))
    made.add(RackHeld(rack=RackId("r2"), owner=Owner("ann"), until=made.fleet.time + 60.0))
    return made


def test_racks() -> None:
    assert drawn(draw_racks(racks(small().context(), asked.Racks()))) == [
        "rack  state        nodes   spares",
        "r0    good         AAAA+B  1 of 1, 1 lent",
        "r1    good         *.%!>.",
        "r2    held by ann  ======",
        "",
        "A train (4 nodes)",
        "B lent (1 node, lent)",
        "C one (part of a node)",
        "D two (part of a node)",
        "* several jobs on one node",
        ". free  + spare  = held  > draining  % unfit  ! failed",
    ]


def test_racks_that_do_not_fit_a_page_say_how_to_go_on() -> None:
    lines = drawn(draw_racks(racks(storied(3, nodes=2).context(), asked.Racks(limit=1))))
    assert lines == [
        "rack  state  nodes  spares",
        "r0    good   ..",
        "",
        ". free",
        "1 racks shown; more with --after r0",
    ]


def test_jobs() -> None:
    made = small()
    made.wait(3700.0)
    assert drawn(draw_jobs(jobs(made.context(), asked.Jobs()))) == [
        "job    owner  queue    prio  state    nodes  gpus   age  where",
        "big    ann    default    50  queued       6    24  1h1m  waits: held",
        "lent   ann    default    50  running      1     4  1h1m  r0",
        "one    ann    default    50  running      1     2  1h1m  r1",
        "train  ann    default    50  running      4    16  1h1m  r0",
        "two    ann    default    50  running      1     1  1h1m  r1",
    ]
    assert drawn(draw_jobs(jobs(storied(1).context(), asked.Jobs()))) == ["no jobs"]


def test_old_answers_say_so() -> None:
    lines = drawn(draw_jobs(jobs(small().context(later_s=95.0), asked.Jobs(limit=1))))
    assert lines[-2:] == [
        "1 of 5 jobs; more with --after big",
        "as of 1m35s ago: nothing has been decided since",
    ]


def test_a_job() -> None:
    made = storied(1)
    made.sit("train", "r0", range(3))
    ready = WorkerStatus(worker=WorkerId("train/0/1"), state=WorkerState.RUNNING, ready=True)
    made.says("r0-n00", ready)
    lines = drawn(draw_job(job(made.context(), asked.Job(job=JobId("train")))))
    assert [CLOCK.sub("TT:TT", line) for line in lines] == [
        "train  running  3 nodes, 12 GPUs",
        "owner ann, queue default, class batch, priority 50, membership 1",
        "because (test): test",
        "",
        "slice  rack  ranks  nodes        spares  workers",
        "0      r0    0-2    r0-n[00-02]  1 of 1  1 ready (pretended), 2 not reported",
        "",
        "    21 TT:TT job.queued            submitted by ann, waits in queue default",
        "    22 TT:TT job.placed            placed (membership 1) on r0 (3 nodes): test",
        "    23 TT:TT job.started           all ranks of membership 1 run",
    ]


def test_a_job_that_waits_and_one_that_is_wounded() -> None:
    made = storied(1)
    made.sit("train", "r0", range(16))
    made.queue("big", JobSpec(name=JobId("big"), nodes=16))
    made.unfit("r0-n03")
    big = drawn(draw_job(job(made.context(), asked.Job(job=JobId("big"))), story=False))
    assert big == [
        "big  queued  16 nodes, 64 GPUs",
        "owner ann, queue default, class batch, priority 50",
        "waits (capacity): 16 nodes are asked for, 2 are free and 2 of them are kept as spares",
    ]
    train = drawn(draw_job(job(made.context(), asked.Job(job=JobId("train"))), story=False))
    assert train[3] == "wounded: rank 3 (node, xid.79)"


def test_a_job_of_which_a_rank_waits_for_a_worker_on_notice() -> None:
    made = storied(1)
    made.sit("train", "r0", range(16), checkpoint=Checkpoint(on_notice_s=60.0))
    made.add(NodeCordoned(node=NodeId("r0-n03"), drain=True, by=Owner("ann")))
    swap = NodeSwap(rank=3, old=3, new=16)
    rungs = (RungTaken(rung=Rung.SPARE, taken=True, reason=Reason(code="spare")),)
    made.add(SliceSwapped(job=JobId("train"), membership=2, index=0, swaps=(swap,), rungs=rungs))
    lines = drawn(draw_job(job(made.context(), asked.Job(job=JobId("train"))), story=False))
    assert (
        "rank 3 starts on r0-n16 when nothing is left of train/3/1 on r0-n03, which has 1m notice"
        in lines
    )


def test_a_node() -> None:
    made = storied(1)
    made.sit("a", "r0", [3])
    running = WorkerStatus(worker=WorkerId("a/0/1"), state=WorkerState.RUNNING, pid=12)
    made.says("r0-n03", running)
    made.unfit("r0-n03")
    lines = drawn(draw_node(node(made.context(), asked.Node(node=NodeId("r0-n03"), story=0))))
    assert [CLOCK.sub("TT:TT", line) for line in lines] == [
        "r0-n03  unfit  fit for none, 4 of 4 GPUs taken",
        "place 3 of rack r0",
        "serial sn-r0-n03, gb200, 0 cores, 0 GB",
        "session s6, spoke last at TT:TT",
        "why (xid.79): a GPU reported Xid 79",
        "needs reboot since TT:TT",
        "fault at TT:TT (xid.79): a GPU reported Xid 79",
        "",
        "worker a/0/1: running, pid 12",
    ]


def test_numbers() -> None:
    made = small()
    until = made.fleet.time + 7200.0
    made.add(AutomationPaused(automation=Automation.DEFRAG, until=until, by=Owner("ann")))
    view = stats(made.context(), asked.Stats())
    first = [
        "cell      cell, 3 racks, 18 nodes, 72 GPUs; ledger at 42",
        "jobs      1 queued, 4 running",
        "nodes     1 draining, 1 failed, 2 free, 6 held, 1 lent, 1 part, 1 spare, 1 unfit, 4 used",
        "GPUs      8 down_node, 4 draining, 9 fragment, 24 held, 4 lent_useful, 4 spare, 19 useful;"
        " 38% of the schedulable at work",
        "queue     1 by held (24 GPUs)",
        "spares    1 of 1, 1 lent",
    ]
    paused = "paused    defrag for 2h more"
    more = [
        "room      0 whole racks, 3 broken, 0 pinned; fragmentation 1.00; could start by nodes:"
        " 3 x 1, 1 x 2",
        "time      0 GPU-h: none; goodput 0.0%, of the jobs' own 100.0%; 83.3% available",
        "waits     to first start at most 1 s (p50), 1 s (p90), 1 s (p99)",
        "recovery  0 swaps of 0 nodes, 0 moves, 0 restarts, 0 requeues",
        "defrag    0 plans with 0 victims, 0 withdrawn, 0 carried out, 0 GPU-h estimated",
    ]
    assert drawn(draw_stats(view, everything=True), width=200) == [*first, *more, paused]
    *lines, hint = drawn(draw_stats(view), width=200)
    assert [line.split() for line in lines] == [line.split() for line in (*first, paused)]
    assert hint.startswith("more: rackwright stats --all, or of cell, time, ")


def test_all_metrics_by_topic() -> None:
    view = stats(small().context(), asked.Stats(metrics=True))
    lines = drawn(draw_stats(view, everything=True), width=200)
    shown = {line.split()[0]: " ".join(line.split()) for line in lines if line}
    assert len(lines) > 90
    assert [title for title in TITLES.values() if title not in lines] == []
    assert shown["gpus"] == (
        "gpus useful: 19, lent_useful: 4, spare: 4, down_node: 8, fragment: 9, draining: 4,"
        " held: 24 GPUs by what they do"
    )
    (waited,) = (line for line in lines if line.startswith("queue_wait_seconds"))
    assert "5-32/batch/default: 1 of mean 0, p50/p90/p99 at most 1/1/1" in waited
    assert shown["time_to_swap_seconds"].startswith("time_to_swap_seconds none yet")
    assert shown["lemon_share"].startswith("lemon_share 0 ")
    assert shown["culprits"].startswith("culprits xid.79: 2")
    of_two = drawn(draw_stats(view, topics=("spares", "health")), width=200)
    assert [line for line in of_two if line in TITLES.values()] == ["Spares", "Health"]
    assert not any(line.startswith("cell ") for line in of_two)


def test_settings() -> None:
    made = storied(1, policy=Policy(slice_nodes=8, lend_spares=False))
    view = policy(made.context(), asked.PolicyAsked())
    assert drawn(draw_policy(view, changed=True)) == [
        "setting      value             unit   why",
        "slice_nodes  8 (default 16)    nodes  largest power of two that leaves two spares of 18",
        "lend_spares  no (default yes)         2 % of the cell more work, simulated",
    ]
    assert len(drawn(draw_policy(view))) > 50
    assert drawn(draw_policy(view, ["queue_gpus"]))[1].split()[:2] == ["queue_gpus", "-"]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["r01-n01", "r01-n02", "r01-n03"], "r01-n[01-03]"),
        (["r01-n01", "r01-n17", "r01-n04", "r01-n05"], "r01-n01, r01-n17, r01-n[04-05]"),
        (["n9", "n10"], "n9, n10"),
        (["a", "b"], "a, b"),
        ([], ""),
    ],
)
def test_names_of_nodes_in_short(names: list[str], text: str) -> None:
    assert nodes_text(names) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59.9, "59s"), (60, "1m"), (3661, "1h1m"), (90_061, "1d1h"), (-5, "0s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert ago(seconds) == text


def test_a_replica_that_waits_for_its_turn_to_leave() -> None:
    made = storied(1, nodes=4)
    made.queue(
        "web",
        JobSpec(
            name=JobId("web"),
            groups=(Group(name=JobId("web"), nodes=1, replicas=2),),
            job_class=JobClass.SERVICE,
        ),
    )
    parts = (
        SlicePlacement(index=at, replica=at, first_rank=at, rack=RackId("r0"), nodes=1 << at)
        for at in range(2)
    )
    made.place("web", tuple(parts))
    made.start("web")
    made.add(NodeCordoned(node=NodeId("r0-n01"), drain=True, by=Owner("ann")))
    assert "stays" not in " ".join(drawn(draw_racks(racks(made.context(), asked.Racks()))))
    made.unfit("r0-n00")
    waits = (
        "replica 1 of web leaves when replica 0 is up, awaited for 0 s: 1 of 2 serve, and 1 must;"
        " drained 0 s ago"
    )
    told = " ".join(drawn(draw_racks(racks(made.context(), asked.Racks()))))
    assert f"r0: web stays, {waits}" in told
    told = " ".join(drawn(draw_node(node(made.context(), asked.Node(node=NodeId("r0-n01"))))))
    assert f"web stays: {waits}" in told
    told = " ".join(drawn(draw_node(node(made.context(), asked.Node(node=NodeId("r0-n00"))))))
    assert "stays" not in told
    lines = drawn(draw_job(job(made.context(), asked.Job(job=JobId("web"))), story=False))
    told = " ".join(lines)
    assert told.count("wounded: ") == 2
    assert f"wounded: rank 1 (drain, drain); {waits}" in told


@pytest.mark.parametrize(
    ("because", "check", "told"),
    [
        ("", False, "draining: until `rackwright uncordon r0-n03`"),
        ("swap", True, "draining (swap): until it has passed its check, or `rackwright uncordon"),
        ("swap", False, "draining (swap): it has no check, so until `rackwright uncordon r0-n03`"),
        ("maintenance", False, "draining (maintenance): until its maintenance is over, or `rack"),
        ("rack-event", False, "draining (rack-event): until that is over, or `rackwright uncordon"),
    ],
)
def test_a_drained_node_says_when_it_takes_work_again(because: str, check: bool, told: str) -> None:
    made = storied(1)
    if check:
        made.join("r0-n03", hardware("r0-n03", checks=True))
    node_id = NodeId("r0-n03")
    made.add(NodeCordoned(node=node_id, drain=True, by=Owner("ann"), because=because))
    lines = drawn(draw_node(node(made.context(), asked.Node(node=node_id, story=0))))
    assert any(line.startswith(told) for line in lines), lines


def test_a_pinned_job_says_so_in_the_list_and_by_itself() -> None:
    made = storied(1)
    made.sit("a", "r0", [3])
    made.add(JobPinned(job=JobId("a"), pinned=True, by=Owner("op")))
    assert drawn(draw_jobs(jobs(made.context(), asked.Jobs())))[1].endswith("r0 (pinned)")
    lines = drawn(draw_job(job(made.context(), asked.Job(job=JobId("a")))))
    assert "pinned by op: nobody moves or evicts it for another" in lines
