"""A job file with values set from the command line: read, changed, then checked as a whole."""

from typing import Any

import orjson
import yaml

from rackwright.host.files.jobfile import ALIASES, MAX_JOB_FILE, job_from_json, read_job
from rackwright.host.files.text import FileError, decode
from rackwright.host.files.yamltext import read_yaml
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobSpec


def read(data: bytes, name: str, settings: tuple[str, ...]) -> tuple[JobId, JobSpec]:
    """The job of a file, with `settings` of the form KEY=VALUE; a KEY may have dots.

    Raises FileError.
    """
    if not settings:
        return job_from_json(data, name=name) if _is_json(data, name) else read_job(data, name=name)
    document = read_yaml(decode(data, name=name, limit=MAX_JOB_FILE), name=name)
    told: dict[str, Any] = dict(document.mapping((), document.value, "a job"))
    for setting in settings:
        _set(told, setting)
    return read_job(yaml.safe_dump(told, sort_keys=False), name=f"{name} with --set")


def _is_json(data: bytes, name: str) -> bool:
    """Is it JSON, or meant to be? YAML may begin with a brace too; what is neither is taken for
    JSON, whose reader says best what is wrong."""
    if data.lstrip()[:1] != b"{":
        return False
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            read_yaml(decode(data, name=name, limit=MAX_JOB_FILE), name=name)
        except FileError:
            return True
        return False
    return True


def _as_written(told: dict[str, Any], key: str) -> str:
    """The name under which the file has what is to be changed: `nodes` may be `num_nodes` there."""
    for alias, own in ALIASES.items():
        for name, other in ((alias, own), (own, alias)):
            if key == name and name not in told and other in told:
                return other
    return key


def _set(told: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise FileError("--set", f"{setting[:60]!r} must be KEY=VALUE")
    first, *more = key.split(".")
    *path, last = (_as_written(told, first), *more)
    inner = told
    for part in path:
        under = inner.setdefault(part, {})
        if not isinstance(under, dict):
            raise FileError("--set", f"{key}: {part} is no mapping")
        inner = under
    try:
        inner[last] = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # a number may have too many digits
        raise FileError("--set", f"{key}: {text[:60]!r} cannot be read as a value") from error
