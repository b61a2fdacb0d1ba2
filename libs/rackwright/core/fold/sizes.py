"""How a running job becomes smaller and larger: slices leave it and come back."""

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold.jobs import left
from rackwright.core.fold.seats import give_back, leave, put_job, release, seat
from rackwright.core.jobs import Job, Shed, Slice
from rackwright.wire.entries.job import JobGrown, JobShrunk


def job_shrunk(fleet: Fleet, entry: JobShrunk) -> None:
    """These slices leave; their index and ranks stay theirs."""
    job = fleet.jobs[entry.job]
    gone = [part for part in job.slices if part.index in entry.indexes]
    ranks = {rank for part in gone for rank in _ranks(part)}
    swaps = left(fleet, job, ranks)
    for part in gone:
        leave(fleet, job, part, _ranks(part), 0.0, job.spec.grace_s)
        give_back(fleet, job.id, part)
    release(fleet, job)
    shed = (*job.shed, *(_shed(part) for part in gone))
    put_job(
        fleet,
        evolve(
            job,
            slices=tuple(part for part in job.slices if part.index not in entry.indexes),
            shed=tuple(sorted(shed, key=_index)),
            wounds=tuple(wound for wound in job.wounds if wound.rank not in ranks),
            membership=entry.membership,
            swaps=swaps,
            state_at=fleet.time,
            moved_at=fleet.time,
            reason=entry.reason,
        ),
    )


def _ranks(part: Slice) -> range:
    return range(part.first_rank, part.first_rank + part.size)


def _index(part: Slice | Shed) -> int:
    return part.index


def _shed(part: Slice) -> Shed:
    return Shed(
        index=part.index,
        group=part.group,
        replica=part.replica,
        first_rank=part.first_rank,
        size=part.size,
    )


def job_grown(fleet: Fleet, entry: JobGrown) -> None:
    """These slices have nodes; the others do not notice but by the membership."""
    job = fleet.jobs[entry.job]
    made = tuple(seat(fleet, job, placement, entry.membership) for placement in entry.slices)
    there = {part.index for part in made}
    put_job(fleet, _grown(fleet, job, made, there, entry))


def _grown(
    fleet: Fleet, job: Job, made: tuple[Slice, ...], there: set[int], entry: JobGrown
) -> Job:
    return evolve(
        job,
        slices=tuple(sorted((*job.slices, *made), key=_index)),
        shed=tuple(one for one in job.shed if one.index not in there),
        membership=entry.membership,
        state_at=fleet.time,
        reason=entry.reason,
    )
