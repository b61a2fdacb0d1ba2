"""Whether a wished job may ever run in this cell as it stands; a no names the field to change."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import may_not_move
from rackwright.core.policy.cut import Cut, cut, least_replicas
from rackwright.core.policy.limits import longest
from rackwright.core.policy.nominal import shortage
from rackwright.core.policy.quota import gpus_of, pinned_limit
from rackwright.core.policy.refusing import wrong
from rackwright.core.policy.resources import refused
from rackwright.wire.ids import QueueName
from rackwright.wire.jobs import CheckpointPlace, JobClass, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Cause, Reason

MAX_PRIORITY = 100

NAMED = 3  # nodes that a warning names


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The job as the cell takes it, defaults of its class filled in, and what its owner is told."""

    spec: JobSpec
    warnings: tuple[Reason, ...] = ()


def admit(fleet: Fleet, spec: JobSpec) -> Admitted | Reason:
    """The job as it will be queued, or why it never can be."""
    for check in _CHECKS:
        problem = check(spec, fleet.policy)
        if problem is not None:
            return problem
    if not fleet.topology.models:
        return Reason(code=Cause.NEVER, numbers={"field": "nodes", "cell_nodes": 0})
    made = cut(spec, fleet.policy, fleet.topology)
    if isinstance(made, Reason):
        return made
    problem = (
        _min_slices(spec, made)
        or _model(fleet, spec)
        or refused(spec, fleet.topology, made.pieces[0].gpus)
        or _never(fleet, spec, made)
        or _too_much(fleet, spec)
    )
    if problem is not None:
        return problem
    warnings = (*made.warnings, *_hints(fleet, spec))
    return Admitted(spec=_filled(spec, fleet.policy), warnings=warnings)


def _model(fleet: Fleet, spec: JobSpec) -> Reason | None:
    """A GPU model that no node has, as far as every rack says which it has."""
    wanted = spec.labels.get("gpu_model")
    if wanted is None:
        return None
    kinds = {shape.kind for shape in fleet.index.by_shape}
    if not kinds or "" in kinds:
        return None
    models = sorted({kind.partition("|")[0] for kind in kinds})
    if wanted in models:
        return None
    return wrong("labels", wanted, "no node of this cell has that GPU model", " or ".join(models))


def _size(spec: JobSpec, policy: Policy) -> Reason | None:
    given = {"nodes": spec.nodes, "gpus": spec.gpus, "groups": spec.groups or None}
    named = [name for name, value in given.items() if value is not None]
    if len(named) == 1:
        return None
    found = " and ".join(named) or "none of them"
    return wrong(named[0] if named else "nodes", found, "is given", "one of nodes, gpus, groups")


def _groups(spec: JobSpec, policy: Policy) -> Reason | None:
    seen: set[str] = set()
    for group in spec.groups:
        field = f"groups.{group.name}"
        if group.name in seen:
            return wrong("groups", group.name, "is the name of two groups", "a name for each")
        seen.add(group.name)
        if group.min_replicas is None:
            continue
        if spec.job_class is not JobClass.SERVICE:
            why = f"is for class service, this is {spec.job_class}"
            return wrong(f"{field}.min_replicas", group.min_replicas, why, "class service")
        if group.min_replicas > group.replicas:
            why = f"is more than replicas {group.replicas}"
            return wrong(
                f"{field}.min_replicas", group.min_replicas, why, f"{group.replicas} or fewer"
            )
    return None


def _what_to_run(spec: JobSpec, policy: Policy) -> Reason | None:
    if spec.command and spec.run:
        return wrong("run", "a script", "is given beside a command", "one of command and run")
    if spec.pretend_s is not None and (spec.command or spec.run or spec.setup):
        why = "is for pretended workers, and there is something to run"
        return wrong("pretend_s", spec.pretend_s, why, "one of command, run and pretend_s")
    return None


def _retries(spec: JobSpec, policy: Policy) -> Reason | None:
    if spec.retry_budget and not spec.restartable:
        why = "asks for retries of a job that is not restartable"
        return wrong("retry_budget", spec.retry_budget, why, "0, or restartable")
    return None


def _moving(spec: JobSpec, policy: Policy) -> Reason | None:
    if spec.movable and spec.checkpoint.where is CheckpointPlace.LOCAL:
        why = "keeps the job on its nodes, and movable is set"
        return wrong("checkpoint.where", "local", why, "shared, or movable: false")
    if spec.movable and not spec.restartable:
        return wrong("movable", "true", "is set for a job that is not restartable", "one of them")
    return None


def _queue(spec: JobSpec, policy: Policy) -> Reason | None:
    """The classes and the priority that a queue takes."""
    classes = policy.queue_classes.get(spec.queue)
    if classes is not None and spec.job_class not in classes:
        why = f"is not taken by queue {spec.queue}"
        return wrong(
            "job_class", spec.job_class.value, why, " or ".join(classes) or "another queue"
        )
    most = policy.queue_priority.get(spec.queue, MAX_PRIORITY)
    if spec.priority > most:
        why = f"is more than queue {spec.queue} takes"
        return wrong("priority", spec.priority, why, f"{most} or less")
    return None


def _without_gpus(spec: JobSpec, policy: Policy) -> Reason | None:
    """Work without GPUs is lent the cores of GPUs that then stand idle: only where a queue says so,
    and only what may be killed."""
    if spec.gpus != 0:
        return None
    queues = policy.cpu_only_queues
    if spec.queue not in queues:
        why = f"is work without GPUs, which queue {spec.queue} does not take"
        ask = (
            f"queue {' or '.join(queues)}" if queues else "1 GPU or more (cpu_only_queues is empty)"
        )
        return wrong("gpus", 0, why, ask)
    if not policy.lend_spares:
        return wrong("gpus", 0, "is lent work, and lend_spares is off", "1 GPU or more")
    if may_not_move(spec) or spec.job_class is not JobClass.BATCH:
        why = "is lent work, which may be killed at any time"
        ask = "class batch, preemptible and restartable, with shared checkpoints"
        return wrong("gpus", 0, why, ask)
    if spec.parallel.tp * spec.parallel.ep > 1:
        return wrong("parallel", spec.parallel.tp, "is given for work without GPUs", "1 each")
    return None


def _time(spec: JobSpec, policy: Policy) -> Reason | None:
    most = longest(policy, spec)
    if most is None or spec.time_limit_s is None or spec.time_limit_s <= most:
        return None
    if spec.job_class is JobClass.INTERACTIVE:
        why = f"is more than the {most:g} s of interactive work"
        return wrong("time_limit_s", spec.time_limit_s, why, f"{most:g} or less")
    if most == policy.time_limit_batch_s:
        why = f"is more than the {most:g} s of one placement"
        return wrong("time_limit_s", spec.time_limit_s, why, f"{most:g} or less")
    why = f"is more than the {most:g} s of work that nobody may move"
    ask = f"{most:g} or less, or restartable and preemptible with shared checkpoints"
    return wrong("time_limit_s", spec.time_limit_s, why, ask)


_CHECKS: tuple[Callable[[JobSpec, Policy], Reason | None], ...] = (
    _size,
    _groups,
    _what_to_run,
    _retries,
    _moving,
    _queue,
    _without_gpus,
    _time,
)


def _min_slices(spec: JobSpec, made: Cut) -> Reason | None:
    count = len(made.pieces)
    if spec.min_slices is None or spec.min_slices <= count:
        return None
    why = f"is more than the {count} slices of the job"
    return wrong("min_slices", spec.min_slices, why, f"{count} or fewer")


def _never(fleet: Fleet, spec: JobSpec, made: Cut) -> Reason | None:
    """A service may start with fewer replicas than it asks for."""
    least = cut(spec, fleet.policy, fleet.topology, least_replicas(spec))
    return shortage(fleet.topology, spec, least if isinstance(least, Cut) else made)


def _too_much(fleet: Fleet, spec: JobSpec) -> Reason | None:
    """More than a limit allows even while nothing else runs: it would wait for ever."""
    policy = fleet.policy
    least = cut(spec, policy, fleet.topology, least_replicas(spec))
    if not isinstance(least, Cut):
        return None
    asked = gpus_of(fleet, least)
    limits: list[tuple[str, int | None]] = [("queue_gpus", policy.queue_gpus.get(spec.queue))]
    if spec.gpus == 0:
        limits = [("queue_lent_gpus", policy.queue_lent_gpus.get(spec.queue))]
    if spec.job_class is JobClass.INTERACTIVE:
        limits.append(("interactive_job_gpus", policy.interactive_job_gpus))
    if may_not_move(spec) and spec.job_class is not JobClass.SERVICE:
        limits.append(("queue_pinned_gpus", policy.queue_pinned_gpus.get(spec.queue)))
        limits.append(("pinned_share", pinned_limit(fleet)))
    field, told = _told(spec, asked)
    for name, most in limits:
        if most is not None and asked > most:
            why = f"asks for {asked} GPUs, {name} allows {most}"
            return wrong(field, told, why, f"{most} GPUs or fewer")
    return None


def _told(spec: JobSpec, asked: int) -> tuple[str, int]:
    """The field that says how large the job is, and its value; that of groups are `asked` GPUs."""
    if spec.nodes is not None:
        return "nodes", spec.nodes
    return ("gpus", spec.gpus) if spec.gpus is not None else ("groups", asked)


def _filled(spec: JobSpec, policy: Policy) -> JobSpec:
    """Nobody takes nodes from interactive work, unless an operator allows it for the queue."""
    preemptible = spec.preemptible and not _untouchable(spec, policy)
    seconds = spec.time_limit_s if spec.time_limit_s is not None else longest(policy, spec)
    if preemptible == spec.preemptible and seconds == spec.time_limit_s:
        return spec
    return replace(spec, preemptible=preemptible, time_limit_s=seconds)


def _untouchable(spec: JobSpec, policy: Policy) -> bool:
    movable: tuple[QueueName, ...] = policy.interactive_movable_queues
    return spec.job_class is JobClass.INTERACTIVE and spec.queue not in movable


def _hints(fleet: Fleet, spec: JobSpec) -> tuple[Reason, ...]:
    """What is allowed and probably not meant."""
    hints = []
    if spec.checkpoint.where is CheckpointPlace.LOCAL and spec.restartable:
        hints.append(Reason(code="checkpoint.local", numbers={"field": "checkpoint.where"}))
    if (
        spec.restartable
        and spec.job_class is JobClass.BATCH
        and spec.checkpoint.interval_s is None
        and (spec.nodes or 0) > 1
    ):
        hints.append(Reason(code="checkpoint.none", numbers={"field": "checkpoint.interval_s"}))
    unknown = [name for name in spec.exclude_nodes if name not in fleet.places]
    if unknown:
        named = ", ".join(unknown[:NAMED])
        hint = Reason(code="exclude.unknown", numbers={"field": "exclude_nodes", "unknown": named})
        hints.append(hint)
    return tuple(hints)
