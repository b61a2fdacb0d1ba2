"""GPU-seconds of a cell by what the GPUs did, and of each job by what became of its time.

An accumulator over the fold: give it each commit's fleet before and after, in order, and every
GPU-second of every installed GPU is in exactly one of the sixteen states (policy page, section 4).
Times are ledger time. Only work since the last checkpoint can be lost, and the ledger holds no
checkpoints: who hears what nodes say calls `saved`. A job that declares an interval and has told
of none is taken to have saved at each multiple of it since its ranks were last up; one that
declares none, never.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from math import floor

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job, JobState, WoundKind
from rackwright.core.occupancy import GpuState, RackUse, in_maintenance
from rackwright.core.policy.ask import spare_racks
from rackwright.core.policy.cut import whole_slice
from rackwright.core.policy.prices import gpus_of
from rackwright.core.rackuse import RackUses
from rackwright.wire.ids import JobId

BANDS = (4, 32, 64, 256, 1024)  # most GPUs of a job in each band but the last


def band(gpus: int) -> str:
    """Jobs of like size: `1-4`, `5-32`, `33-64`, `65-256`, `257-1024` or `1025+` GPUs."""
    least = 1
    for most in BANDS:
        if gpus <= most:
            return f"{least}-{most}"
        least = most + 1
    return f"{least}+"


ALLOCATED = (
    GpuState.USEFUL,
    GpuState.LOST,
    GpuState.RESTARTING,
    GpuState.STALLED,
    GpuState.LENT_USEFUL,
)


@dataclass(slots=True)
class Stretch:
    """Work from `begin` to `end` on so many GPUs, those on lent spares apart."""

    begin: float
    end: float
    useful: int
    lent: int


@dataclass(slots=True, kw_only=True)
class JobTime:
    """One job's seconds: at work, of these the ones that were thrown away, and all in which it had
    nodes since its ranks were first up (`wall_s`); right up to `since`.

    `useful` and `lent` are the GPUs at work since then, `placed` whether time counts. `unsaved` is
    work since the last checkpoint; `up_at` when its ranks were up last; `moving`: a plan moves it,
    and what it did since its checkpoint is lost once it is up at its new place.
    """

    gpus: int = 0
    useful_s: float = 0.0
    lost_s: float = 0.0
    wall_s: float = 0.0
    since: float = 0.0
    useful: int = 0
    lent: int = 0
    placed: bool = False
    unsaved: list[Stretch] = field(default_factory=list)
    saved_at: float | None = None
    up_at: float = 0.0
    moving: bool = False

    @property
    def ettr(self) -> float:
        """Effective training time ratio: time at work and not thrown away, of all the time from the
        first start on that was not spent in the queue. 1 for a job that has had no time yet."""
        return (self.useful_s - self.lost_s) / self.wall_s if self.wall_s else 1.0

    def settle(self, now: float) -> None:
        """Count up to `now`."""
        passed = now - self.since
        if passed > 0:
            self.wall_s += passed * self.placed
            if self.useful or self.lent:
                self.useful_s += passed
                self._worked(now)
        self.since = now

    def _worked(self, now: float) -> None:
        last = self.unsaved[-1] if self.unsaved else None
        as_now = (self.since, self.useful, self.lent)
        if last is not None and (last.end, last.useful, last.lent) == as_now:
            last.end = now
        else:
            self.unsaved.append(Stretch(self.since, now, self.useful, self.lent))

    def save(self, at: float) -> None:
        """Nothing before `at` can be lost any more."""
        self.unsaved = [one for one in self.unsaved if one.end > at]
        for one in self.unsaved:
            one.begin = max(one.begin, at)

    def after(self, earlier: "JobTime | None") -> "JobTime":
        """With what it had been through before its counting began."""
        if earlier is None:
            return replace(self, unsaved=list(self.unsaved))
        return replace(
            self,
            useful_s=self.useful_s + earlier.useful_s,
            lost_s=self.lost_s + earlier.lost_s,
            wall_s=self.wall_s + earlier.wall_s,
            unsaved=[*earlier.unsaved, *self.unsaved],
        )


@dataclass(slots=True, kw_only=True)
class BandTime:
    """Jobs of one band that have ended: how many, and the sums of their seconds."""

    jobs: int = 0
    useful_s: float = 0.0
    lost_s: float = 0.0
    wall_s: float = 0.0

    def join(self, other: "BandTime") -> None:
        """Those of another one too."""
        self.jobs += other.jobs
        self.useful_s += other.useful_s
        self.lost_s += other.lost_s
        self.wall_s += other.wall_s

    @property
    def ettr(self) -> float:
        """That of all these jobs together."""
        return (self.useful_s - self.lost_s) / self.wall_s if self.wall_s else 1.0


def _no_seconds() -> dict[GpuState, float]:
    return dict.fromkeys(GpuState, 0.0)


@dataclass(slots=True, kw_only=True)
class Accounts:
    """`seconds` are GPU-seconds by state and `installed_s` those of all installed GPUs, `racks_s`
    the seconds of all racks together, up to `at`;
    `jobs` the time of living jobs, each up to its own `since`; `bands` that of ended ones."""

    seconds: dict[GpuState, float] = field(default_factory=_no_seconds)
    installed_s: float = 0.0
    racks_s: float = 0.0
    at: float = 0.0
    jobs: dict[JobId, JobTime] = field(default_factory=dict)
    bands: dict[str, BandTime] = field(default_factory=dict)
    _racks: dict[int, RackUse] = field(default_factory=dict)
    _now: Counter[GpuState] = field(default_factory=Counter)
    _uses: RackUses = field(default_factory=RackUses, compare=False, repr=False)
    _slice: int = 0
    _out: frozenset[str] = frozenset()
    _spare: int = 0

    def begin(self, fleet: Fleet) -> None:
        """Count from this fleet on; of what was before it nothing is known."""
        self.at = fleet.time
        self._slice = whole_slice(fleet.policy, fleet.topology)
        self._out = in_maintenance(fleet, fleet.time)
        self._spare = spare_racks(fleet)
        changed = self._look(fleet, set(fleet.racks), fleet.time)
        self._rate(fleet, changed | set(fleet.jobs), fleet.time)

    def take(self, before: Fleet, after: Fleet) -> None:
        """One commit was folded: time has passed on `before`, then it became `after`."""
        if after.time > self.at:
            self.run(before, after.time)
        for name in sorted(after.touched_jobs):
            self._follow(name, before, after)
        racks = set(after.touched_racks)
        for name in after.touched_jobs:
            for job in (before.jobs.get(name), after.jobs.get(name)):
                racks.update(part.rack for part in (job.slices if job is not None else ()))
        size = whole_slice(after.policy, after.topology)
        out = in_maintenance(after, after.time)
        if (size, out) != (self._slice, self._out):
            self._slice, self._out = size, out
            racks = set(after.racks)
        spare = spare_racks(after)
        if spare != self._spare:
            racks.update(bits(spare ^ self._spare))
            self._spare = spare
        changed = self._look(after, racks, after.time)
        self._rate(after, changed | after.touched_jobs, after.time)

    def saved(self, job: JobId, at: float) -> None:
        """The job has reported that all its work up to `at` (ledger time) is saved."""
        known = self.jobs.get(job)
        if known is None or (known.saved_at is not None and known.saved_at >= at):
            return
        known.settle(max(self.at, known.since))
        known.saved_at = at
        known.save(at)

    def run(self, fleet: Fleet, until: float) -> None:
        """Let time run to `until`, with what ends or begins by itself on the way: holds and
        probations, and windows of maintenance."""
        turns: dict[float, set[int]] = {}
        for at, number in fleet.timers:
            if self.at < at < until:
                turns.setdefault(at, set()).add(number)
        for window in fleet.maintenance:
            for at in (window.begin, window.end):
                if self.at < at < until:
                    turns.setdefault(at, set()).update(fleet.racks)
        for at in sorted(turns):
            self._accrue(fleet, at)
            self._out = in_maintenance(fleet, at)
            self._rate(fleet, self._look(fleet, turns[at], at), at)
        self._accrue(fleet, until)

    def _accrue(self, fleet: Fleet, until: float) -> None:
        passed = until - self.at
        for state, gpus in self._now.items():
            self.seconds[state] += gpus * passed
        self.installed_s += fleet.installed_gpus * passed
        self.racks_s += len(fleet.racks) * passed
        self.at = until

    def _look(self, fleet: Fleet, racks: set[int], now: float) -> set[JobId]:
        """Look at these racks anew; the jobs that work on more or fewer GPUs of them now."""
        changed: set[JobId] = set()
        total = self._now
        for number in racks:
            known = self._racks.get(number)
            found = self._uses.of(fleet, number, self._slice, now, self._out, self._spare)
            if known is not None:
                for state, gpus in known.states.items():
                    total[state] -= gpus
                if known.jobs != found.jobs:
                    changed.update(name for name, _ in known.jobs.items() ^ found.jobs.items())
            else:
                changed.update(found.jobs)
            self._racks[number] = found
            for state, gpus in found.states.items():
                total[state] += gpus
        return changed

    def _rate(self, fleet: Fleet, jobs: set[JobId], now: float) -> None:
        """What these jobs work on from now on."""
        for name in jobs:
            job = fleet.jobs.get(name)
            if job is None:
                continue
            known = self.jobs.get(name)
            if known is None:
                known = self.jobs[name] = JobTime(since=now, up_at=now)
            known.settle(now)
            known.useful = known.lent = 0
            for number in {part.rack for part in job.slices}:
                useful, lent = self._racks[number].jobs.get(name, (0, 0))
                known.useful += useful
                known.lent += lent
            known.placed = bool(job.slices) and job.first_started_at is not None
            if job.slices:
                known.gpus = gpus_of(fleet, job)

    def _follow(self, name: JobId, before: Fleet, after: Fleet) -> None:
        """Is work of this job to be done again, is it up anew, has it ended?"""
        job, old, known = after.jobs.get(name), before.jobs.get(name), self.jobs.get(name)
        if known is None or old is None:
            return
        known.settle(after.time)
        if job is not None and job.plan is not None and old.plan is None:
            known.moving = loses(old, job, after)
        elif known.moving and job is not None and _returned(old, job):
            known.moving = False
        elif loses(old, job, after) or (known.moving and _over(old, job)):
            self._lose(old, known, after.time)
        if job is None:
            self._close(name, known)
        elif job.started != old.started:
            known.up_at = after.time

    def _lose(self, job: Job, known: JobTime, now: float) -> None:
        """Back to the last checkpoint."""
        known.moving = False
        interval = job.spec.checkpoint.interval_s
        if known.saved_at is None and interval is not None:
            known.save(known.up_at + interval * floor((now - known.up_at) / interval))
        for one in known.unsaved:
            span = one.end - one.begin
            known.lost_s += span
            self.seconds[GpuState.LOST] += span * (one.useful + one.lent)
            self.seconds[GpuState.USEFUL] -= span * one.useful
            self.seconds[GpuState.LENT_USEFUL] -= span * one.lent
        known.unsaved.clear()

    def _close(self, name: JobId, known: JobTime) -> None:
        del self.jobs[name]
        if known.wall_s:
            total = self.bands.setdefault(band(known.gpus), BandTime())
            total.jobs += 1
            total.useful_s += known.useful_s
            total.lost_s += known.lost_s
            total.wall_s += known.wall_s

    def join(self, newer: "Accounts") -> None:
        """Those of a stretch of the ledger that begins where this one ends."""
        for state, seconds in newer.seconds.items():
            self.seconds[state] += seconds
        self.installed_s += newer.installed_s
        self.racks_s += newer.racks_s
        self.at = max(self.at, newer.at)
        for size, total in newer.bands.items():
            self.bands.setdefault(size, BandTime()).join(total)
        for name, known in self.jobs.items():
            if newer.at and name not in newer.jobs and known.wall_s:
                self.bands.setdefault(band(known.gpus), BandTime()).join(_rest(known))
        lived = self.jobs
        self.jobs = {name: known.after(lived.get(name)) for name, known in newer.jobs.items()}
        self._racks, self._now = dict(newer._racks), Counter(newer._now)
        self._slice, self._out, self._spare = newer._slice, newer._out, newer._spare

    def goodput(self) -> float:
        """Useful of all GPU-seconds of the cell, those in maintenance apart; 0 before any."""
        there = self.installed_s - self.seconds[GpuState.MAINTENANCE]
        return self._done() / there if there > 0 else 0.0

    def training_goodput(self) -> float:
        """Useful of the GPU-seconds that jobs had; 1 before any."""
        had = sum(self.seconds[state] for state in ALLOCATED)
        return self._done() / had if had > 0 else 1.0

    def _done(self) -> float:
        return self.seconds[GpuState.USEFUL] + self.seconds[GpuState.LENT_USEFUL]


def _rest(known: JobTime) -> BandTime:
    """The earlier part of a job that ended in a later stretch, where it was counted as a job."""
    return BandTime(useful_s=known.useful_s, lost_s=known.lost_s, wall_s=known.wall_s)


def loses(old: Job, job: Job | None, after: Fleet) -> bool:
    """Does this change of a job throw away what it did since its last checkpoint?

    Work of synchronous ranks goes back as a whole when one of them gets a new process. Nothing is
    lost by a job that has ended well or by its owner's wish, by one that saves on notice when it
    has to leave with notice, or by one of several slices when slices move with notice.
    """
    if not old.started:
        return False
    if job is None:
        stone = after.tombstones.get(old.id)
        return stone is not None and stone.state is JobState.FAILED
    saves = old.spec.checkpoint.on_notice_s is not None
    if not job.slices:
        told = len(job.preempted) > len(old.preempted) and not any(p.lent for p in old.slices)
        return bool(old.slices) and not (told and saves)
    if job.membership == old.membership or not old.slices:
        return False
    told = all(wound.kind is WoundKind.DRAIN for wound in old.wounds)
    return not (told and (saves or len(old.slices) > 1))


def _returned(old: Job, job: Job) -> bool:
    """Has the plan been withdrawn before it was moved?"""
    return old.plan is not None and job.plan is None and job.membership > old.membership


def _over(old: Job, job: Job | None) -> bool:
    """Is it up where a plan has moved it, or will it never be?"""
    return job is None or not job.slices or job.started != old.started
