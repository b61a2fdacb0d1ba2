"""The Philly trace as published: one JSON list of jobs with their attempts, read piece by piece."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TextIO

from rackwright.simulator.workload import BadTrace, Row

CHUNK = 1 << 20  # characters
LONGEST = 1 << 26  # characters of one job


def read_philly(file: TextIO, path: str, skipped: dict[str, int]) -> Iterator[Row]:
    """Its jobs, in the order of the file; `row` counts jobs from 1. Raises BadTrace."""
    for number, job in enumerate(_objects(file, path), 1):
        row = _row(path, number, job, skipped)
        if row is not None:
            yield row


def _objects(file: TextIO, path: str) -> Iterator[dict[str, Any]]:
    """The objects of a list, without holding the list."""
    decoder = json.JSONDecoder()
    buffer = file.read(CHUNK).lstrip()
    if not buffer.startswith("["):
        raise BadTrace(path, None, None, "is no list of jobs")
    buffer, number = buffer[1:], 0
    while True:
        buffer = buffer.lstrip().removeprefix(",").lstrip()
        if buffer.startswith("]"):
            return
        try:
            found, end = decoder.raw_decode(buffer)
        except json.JSONDecodeError as error:
            more = file.read(CHUNK)
            if not more or len(buffer) > LONGEST:
                raise BadTrace(path, number + 1, None, f"is no JSON: {error.msg}") from None
            buffer += more
            continue
        number += 1
        if not isinstance(found, dict):
            raise BadTrace(path, number, None, "is no job")
        buffer = buffer[end:]
        yield found


def _row(path: str, number: int, job: dict[str, Any], skipped: dict[str, int]) -> Row | None:
    submit = _time(path, number, "submitted_time", job.get("submitted_time"))
    if submit is None:
        raise BadTrace(path, number, "submitted_time", "is missing")
    attempts = job.get("attempts")
    if not isinstance(attempts, list):
        raise BadTrace(path, number, "attempts", "is missing")
    seconds, gpus = 0.0, 0
    for attempt in attempts:
        begin = _time(path, number, "start_time", attempt.get("start_time"))
        end = _time(path, number, "end_time", attempt.get("end_time"))
        if begin is None or end is None:
            continue
        if end < begin:
            raise BadTrace(path, number, "end_time", "lies before start_time: negative duration")
        seconds += end - begin
        gpus = max(gpus, sum(len(one.get("gpus", ())) for one in attempt.get("detail", ())))
    if gpus == 0:
        skipped["never ran"] = skipped.get("never ran", 0) + 1
        return None
    name = str(job.get("jobid", number))
    kind = str(job.get("vc", ""))
    return Row(row=number, name=name, submit_s=submit, gpus=gpus, duration_s=seconds, kind=kind)


def _time(path: str, number: int, column: str, text: object) -> float | None:
    if text is None or text in {"", "None"}:
        return None
    try:
        return datetime.fromisoformat(f"{text}+00:00").timestamp()
    except ValueError:
        raise BadTrace(path, number, column, f"{text!r} is no date and time") from None
