"""Replicas of a service leave drained nodes in turn: the workers count who is alive, as they go."""

from __future__ import annotations

from functools import partial

import pytest

from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.entries.job import JobStarted
from rackwright.wire.entries.slice import SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import Checkpoint, Group, JobClass
from rackwright.wire.wishes import Drain
from tests.support.live import Live
from tests.support.world import appears

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]

REPLICAS, LEAST = 3, 2
# Each worker leaves its pid. One that is told to end looks which pids of other ranks are alive, and
# writes those ranks down before it goes.
COUNTING = r"""
mine="$LIVE_HOME/$RACKWRIGHT_JOB.$RACKWRIGHT_RANK"
mkfifo "$mine.$RACKWRIGHT_INCARNATION.fifo"
exec 8<>"$mine.$RACKWRIGHT_INCARNATION.fifo"
count() {
  alive=
  for rank in 0 1 2 3 4 5; do
    [ "$rank" = "$RACKWRIGHT_RANK" ] && continue
    for pid in $(cat "$LIVE_HOME/$RACKWRIGHT_JOB.$rank.pids" 2>/dev/null); do
      kill -0 "$pid" 2>/dev/null && { alive="$alive $rank"; break; }
    done
  done
  echo "$RACKWRIGHT_RANK$alive" >> "$LIVE_HOME/$RACKWRIGHT_JOB.left"
  exit 0
}
trap count TERM
echo $$ >> "$mine.pids"
while :; do read -r -t 0.25 -u 8 _; done
"""


def left(live: Live, name: str) -> list[tuple[int, set[int]]]:
    """Each rank that was told to end, and the other ranks that were alive then."""
    path = live.home / f"{name}.left"
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return [(int(line.split()[0]), {int(one) for one in line.split()[1:]}) for line in lines]


def whole(alive: set[int]) -> int:
    """Replicas of two ranks, both alive."""
    return sum({2 * replica, 2 * replica + 1} <= alive for replica in range(REPLICAS))


async def test_never_fewer_replicas_live_than_must_while_two_nodes_are_drained(live: Live) -> None:
    groups = (Group(name=JobId("decode"), nodes=2, replicas=REPLICAS, min_replicas=LEAST),)
    spec = live.spec(
        "turns",
        None,
        groups=groups,
        job_class=JobClass.SERVICE,
        slice_nodes=2,
        run=COUNTING,
        grace_s=5.0,
        notice_signal=None,
        checkpoint=Checkpoint(),
    )
    job = await live.start(spec)
    leaving = [live.nodes_of("turns", index)[0] for index in (0, 1)]
    before = live.identities("turns")
    assert len(before) == 2 * REPLICAS
    since = live.now()
    for node in leaving:
        answer = await live.wish(Drain(node=node))
        assert not isinstance(answer.entry, WishRefused)
    await live.until(
        lambda fleet: (
            not fleet.jobs[JobId("turns")].wounds
            and fleet.jobs[JobId("turns")].started == fleet.jobs[JobId("turns")].membership
            and len(live.entries(JobStarted, since)) == 2
        ),
        "both to have left in turn",
    )
    await appears(partial(_told, live, 2))
    after = await live.running("turns")
    assert not {node for index in range(REPLICAS) for node in live.nodes_of("turns", index)} & set(
        leaving
    )

    # One went, was up again, and then the other went.
    order = [
        entry.TYPE
        for commit in live.watched.commits[since:]
        if not commit.void
        for entry in commit.entries
        if isinstance(entry, SliceSwapped | SliceMoved | JobStarted)
    ]
    assert [kind.partition(".")[0] for kind in order] == ["slice", "job", "slice", "job"]
    said = left(live, "turns")
    gone = {rank for rank, _ in said}
    assert list(dict.fromkeys(rank // 2 for rank, _ in said)) == [0, 1], "whoever went, in turn"
    assert {0, 2} <= gone
    for _, alive in said:
        assert whole(alive) >= LEAST
    staying = {job.worker(rank) for rank in range(2 * REPLICAS) if rank not in gone}
    now = live.identities("turns")
    assert {one: now[one] for one in staying} == {one: before[one] for one in staying}
    assert after.ranks == 2 * REPLICAS


def _told(live: Live, count: int) -> bool:
    return len(left(live, "turns")) >= count
