"""A job file: one YAML mapping, read into a job id and a JobSpec.

Names that SkyPilot users know mean the same here: `name`, `num_nodes`, `resources` with
`accelerators` (kind and count per node), `cpus` and `memory` (per node), `setup`, `run`, `envs`.
Beside them stands every field of JobSpec under its own name (`class` for `job_class`), and `id`,
which is the name unless it is given:

    name: train
    num_nodes: 32
    resources: {accelerators: "GB200:4"}
    queue: research
    checkpoint: {interval_s: 1800, on_notice_s: 60}
    run: torchrun --nnodes $NNODES train.py
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from rackwright.host.files.text import Document, Path, decode, kind_of, read_json
from rackwright.host.files.yamltext import read_yaml
from rackwright.wire.codec import MAX_WISH, Unreadable, read_value
from rackwright.wire.ids import InvalidId, JobId, check_name
from rackwright.wire.jobs import Checkpoint, Group, JobSpec, Parallel
from rackwright.wire.wishes import Submit

MAX_JOB_FILE = MAX_WISH  # bytes: what is longer could not be wished for
GPUS_PER_NODE = 4
GPU_MODEL = "gpu_model"  # label that asks for a kind of GPU
ANY_MODEL = "GPU"  # as an accelerator's name: whatever the node has

# Other names in the file for a field of JobSpec.
ALIASES = {"class": "job_class", "envs": "env", "num_nodes": "nodes"}
OWN = [field.name for field in fields(JobSpec)]
KNOWN = ["id", "resources", *ALIASES, *OWN]
PARTS = {"checkpoint": Checkpoint, "parallel": Parallel}

# What SkyPilot knows and a cell does not: why, or what to say instead.
ELSEWHERE = {
    "workdir": "nothing is copied to the nodes; `cd` in `run` to a shared folder",
    "file_mounts": "nothing is mounted; use a shared file system",
    "storage": "nothing is mounted; use a shared file system",
    "volumes": "nothing is mounted; use a shared file system",
    "secrets": "the ledger keeps a job for ever; read secrets from a file in `run`",
    "service": "write `class: service` and `groups` with replicas",
    "job_recovery": "write `retry_budget`; swaps never use it up",
    "config": "there is no such configuration",
    "pool": "write `queue`",
}
SIZES = ("num_nodes", "nodes", "gpus", "groups")
RESOURCES = ("accelerators", "cpus", "memory")
CLOUD = "is a cloud's; a cell has its own nodes: leave it out"
RESOURCES_ELSEWHERE = {
    "use_spot": "write `preemptible` beside `resources`",
    "job_recovery": ELSEWHERE["job_recovery"],
    "labels": "write `labels` beside `resources`; they choose nodes",
    "any_of": "one kind of node only",
    "ordered": "one kind of node only",
    **dict.fromkeys(
        ("infra", "cloud", "region", "zone", "instance_type", "image_id", "disk_size"), CLOUD
    ),
    **dict.fromkeys(
        ("disk_tier", "network_tier", "ports", "autostop", "accelerator_args", "max_hourly_cost"),
        CLOUD,
    ),
}


def read_job(
    data: bytes | str,
    *,
    name: str = "job file",
    default_name: str | None = None,
    gpus_per_node: int = GPUS_PER_NODE,
) -> tuple[JobId, JobSpec]:
    """Read a YAML job file. `name` of the file for errors; `default_name` for a job without one.

    Raises FileError, which names line, field and what would be right.
    """
    document = read_yaml(decode(data, name=name, limit=MAX_JOB_FILE), name=name)
    return _job(document, default_name, gpus_per_node)


def job_from_json(
    data: bytes | str,
    *,
    name: str = "job",
    default_name: str | None = None,
    gpus_per_node: int = GPUS_PER_NODE,
) -> tuple[JobId, JobSpec]:
    """The same from JSON, or from the body of a submit wish (`job` and `spec`).

    Raises FileError.
    """
    document = read_json(decode(data, name=name, limit=MAX_JOB_FILE), name=name)
    if isinstance(document.value, dict) and "spec" in document.value:
        try:
            wish = read_value(Submit, document.value)
        except Unreadable as error:
            raise document.unreadable(error) from error
        return wish.job, wish.spec
    return _job(document, default_name, gpus_per_node)


def _job(document: Document, default_name: str | None, gpus_per_node: int) -> tuple[JobId, JobSpec]:
    told = document.mapping((), document.value, "a job")
    if "owner" in told:
        rule = "is not given in a file: a job belongs to the user who submits it (--user)"
        raise document.error(("owner",), rule)
    _known(document, (), told, KNOWN, ELSEWHERE)
    wanted = {key: value for key, value in told.items() if key not in ("id", "resources")}
    if default_name is not None:
        wanted.setdefault("name", default_name)
    if "name" not in wanted:
        raise document.error((), "name: is missing; every job has a name")
    _one_spelling(document, told)
    for key in ("envs", "env", "labels"):
        if key in told:
            wanted[key] = _texts(document, (key,), told[key])
    for key in ("envs", "env"):
        for variable in wanted.get(key, ()):
            if not _VARIABLE.fullmatch(variable):
                rule = "must be letters, digits or '_', the first no digit: it is a variable's name"
                raise document.error((key, variable), rule)
    _sizes(document, told, wanted, gpus_per_node)
    _parts(document, told)
    _what_to_run(document, told)
    spec = _strictly(document, wanted)
    return _id(document, told, spec), spec


def _known(
    document: Document,
    path: Path,
    told: Mapping[str, Any],
    known: Iterable[str],
    elsewhere: Mapping[str, str],
) -> None:
    for key in told:
        if key in elsewhere and key not in known:
            raise document.error((*path, key), f"is SkyPilot's and not read here: {elsewhere[key]}")
    document.only(path, told, known)


def _one_spelling(document: Document, told: Mapping[str, Any]) -> None:
    for alias, own in ALIASES.items():
        if alias in told and own in told:
            raise document.error((alias,), f"means the same as `{own}`; write one of them")


def _texts(document: Document, path: Path, value: object) -> dict[str, str]:
    """Names and texts; numbers and booleans become the text they were written as."""
    found: dict[str, str] = {}
    for key, item in document.mapping(path, value, "a mapping").items():
        here = (*path, key)
        match item:
            case str():
                found[key] = item
            case bool():
                found[key] = document.raw.get(here, str(item).lower())
            case int() | float():
                found[key] = document.raw.get(here, str(item))
            case None:
                raise document.error(here, "has no value; write one, or '' for an empty text")
            case _:
                raise document.error(here, f"must be a text, not {kind_of(item)}")
    return found


_IN_RESOURCES = {"cpus": "cpus", "memory_gb": "memory"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AMOUNT = re.compile(r"(?P<amount>[0-9]{1,7}(?:\.[0-9]{1,3})?)\+?")
_ACCELERATOR = re.compile(r"(?P<model>[A-Za-z][A-Za-z0-9_.-]*)(?::(?P<count>.*))?")


def _accelerator(document: Document, value: object) -> tuple[str, int]:
    """Kind and count per node, of "GB200:4", {GB200: 4} or "GB200" (one)."""
    path = ("resources", "accelerators")
    rule = 'must be a kind and a whole count per node, such as "GB200:4"'
    if isinstance(value, dict) and len(value) == 1:
        ((model, count),) = value.items()
    elif isinstance(value, str) and (found := _ACCELERATOR.fullmatch(value.strip())):
        model, told = found["model"], found["count"]
        count = 1 if told is None else int(told) if told.isdecimal() and told.isascii() else told
    else:
        raise document.error(path, f"{rule}, not {kind_of(value)}")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise document.error(path, f"{rule}; the count is {kind_of(count)}")
    return model, count


def _sizes(
    document: Document, told: Mapping[str, Any], wanted: dict[str, Any], gpus_per_node: int
) -> None:
    """Sets the size of the job in `wanted`, from whichever way it was told."""
    resources = document.mapping(("resources",), told.get("resources", {}), "a mapping")
    _known(document, ("resources",), resources, RESOURCES, RESOURCES_ELSEWHERE)
    if "accelerators" in resources:
        _whole_or_part(document, resources["accelerators"], wanted, gpus_per_node)
    _beside_gpus(document, resources, wanted)
    sizes = [key for key in SIZES if wanted.get(key) or (key == "gpus" and wanted.get(key) == 0)]
    if not sizes:
        path: Path = next(((key,) for key in ("num_nodes", "nodes") if key in told), ())
        rule = "say how large: `nodes`, or `gpus`, or `groups`, or `num_nodes` with accelerators"
        raise document.error(path, rule if not path else "must be 1 or more")
    if len(sizes) > 1 and wanted.get("gpus") == 0:
        rule = "0 asks for work without GPUs, on one node, and so tells the size by itself"
        raise document.error(("gpus",), f"{rule}; leave `{sizes[0]}` out, or `gpus`")
    if len(sizes) > 1:
        rule = f"the size is told by `{sizes[0]}` too; write one of them"
        raise document.error((sizes[1],), rule)
    gpus = wanted.get("gpus")
    if isinstance(gpus, int) and gpus > gpus_per_node and gpus % gpus_per_node:
        next_whole = (gpus // gpus_per_node + 1) * gpus_per_node
        rule = f"{gpus} GPUs are no whole number of nodes with {gpus_per_node} GPUs"
        choice = f"write 1 to {gpus_per_node}, or a multiple such as {next_whole}"
        raise document.error(("gpus",), f"{rule}; {choice}")


def _beside_gpus(document: Document, resources: Mapping[str, Any], wanted: dict[str, Any]) -> None:
    """`cpus` and `memory`. Where nothing else tells a size it is work without GPUs, as there."""
    for key, own in (("cpus", "cpus"), ("memory", "memory_gb")):
        if key not in resources:
            continue
        if own in wanted:
            raise document.error(("resources", key), f"means the same as `{own}`; write one")
        wanted[own] = _at_least(document, ("resources", key), resources[key])
    told = any(key in wanted for key in SIZES)
    if not told and ("cpus" in resources or "memory" in resources):
        wanted["gpus"] = 0


def _at_least(document: Document, path: Path, value: object) -> float:
    """`8`, "8" and "8+" mean at least 8."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    found = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or not float(found["amount"]):
        unit = "cores" if path[-1] == "cpus" else "GB"
        raise document.error(path, f'must be a number of {unit} such as 8 or "8+", not {value!r}')
    return float(found["amount"])


def _whole_or_part(
    document: Document, value: object, wanted: dict[str, Any], gpus_per_node: int
) -> None:
    """Whole nodes if each gives all its GPUs, else part of one node."""
    model, count = _accelerator(document, value)
    path = ("resources", "accelerators")
    for key in ("gpus", "groups", "nodes"):
        if key in wanted:
            raise document.error(path, f"tells the size, as `{key}` does; write one of them")
    if model != ANY_MODEL:
        wanted["labels"] = {GPU_MODEL: model, **wanted.get("labels", {})}
    nodes = wanted.get("num_nodes", 1)
    if count > gpus_per_node:
        raise document.error(
            path,
            f"a node has {gpus_per_node} GPUs, not {count}; the count is per node: write"
            f' "{model}:{gpus_per_node}" and `num_nodes` for the number of nodes',
        )
    if count == gpus_per_node:
        wanted["num_nodes"] = nodes
    elif nodes == 1:
        wanted.pop("num_nodes", None)
        wanted["gpus"] = count
    else:
        raise document.error(
            path,
            f'several nodes are taken whole: write "{model}:{gpus_per_node}", or `num_nodes: 1`'
            f" for {count} GPUs of one node",
        )


def _parts(document: Document, told: Mapping[str, Any]) -> None:
    """Names inside `checkpoint`, `parallel` and each of `groups`."""
    for key, part in PARTS.items():
        if key in told:
            value = document.mapping((key,), told[key], "a mapping")
            document.only((key,), value, [field.name for field in fields(part)])
    groups = told.get("groups", [])
    if not isinstance(groups, list):
        raise document.error(("groups",), f"must be a list, not {kind_of(groups)}")
    for at, group in enumerate(groups):
        value = document.mapping(("groups", at), group, "a group")
        document.only(("groups", at), value, [field.name for field in fields(Group)])


def _what_to_run(document: Document, told: Mapping[str, Any]) -> None:
    if isinstance(told.get("command"), str):
        raise document.error(("command",), "must be a list of texts; write a shell line as `run`")
    if told.get("command") and told.get("run"):
        raise document.error(("run",), "a job has `command` or `run`, not both")
    for key in ("setup", "run"):
        if key in told and told[key] is None:
            raise document.error((key,), "has no value; write a script, or leave it out")


def _strictly(document: Document, wanted: Mapping[str, Any]) -> JobSpec:
    written = {ALIASES.get(key, key): key for key in wanted}
    try:
        return read_value(JobSpec, {own: wanted[key] for own, key in written.items()})
    except Unreadable as error:
        first, dot, rest = error.field.partition(".")
        inner = _IN_RESOURCES.get(first, "")
        if inner and first not in document.value:
            first = f"resources.{inner}"
        field = written.get(first, first) + dot + rest
        raise document.unreadable(Unreadable(field, error.problem)) from error


def _id(document: Document, told: Mapping[str, Any], spec: JobSpec) -> JobId:
    job = told.get("id", spec.name)
    if not isinstance(job, str):
        raise document.error(("id",), f"must be a text, not {kind_of(job)}; put it in quotes")
    try:
        return JobId(check_name("id", job))
    except InvalidId as error:
        raise document.error(("id",), f"must be {error.rule}") from error
