"""Reads job traces, row by row, in their normalized form or in the columns they were published in.

Normalized: job, submit_s, gpus, duration_s. Acme (Kalos, Seren): job_id, gpu_num, submit_time,
start_time, end_time. ITP: job_id, submission_time, duration, num_gpu. Philly: the JSON of its
cluster_job_log. A fork's Kalos: arrival_time, num_iteration, iteration_computing_time,
gpu_workers, gpu_per_worker. The header says which it is. CSV, compressed by gzip or not, is never
held whole; jobs without GPUs or that never ran are passed over and counted.
"""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TextIO

from rackwright.simulator.philly import read_philly
from rackwright.simulator.workload import BadTrace, Row

MAX_FIELD = 131_072  # characters of one field
MAX_LINE = 1_048_576
MAX_GPUS = 1_000_000
MAX_S = 1e11  # of a time or a duration: some 3,000 years
PASSED = 256  # rows between two looks at how far the file is read
GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Trace:
    """A trace being read. `skipped` counts what was passed over, by reason; `share` of it has been
    given out."""

    path: Path
    format: str = ""
    skipped: dict[str, int] = field(default_factory=dict)
    share: float = 0.0

    def rows(self, *, sort: bool = False) -> Iterator[Row]:
        """Its jobs by submit time. Raises BadTrace; with `sort` rows may come in any order."""
        made = self._read()
        if sort or self._is_json:
            made = self._counted(sorted(made, key=lambda row: (row.submit_s, row.row)))
        before: Row | None = None
        for row in made:
            if before is not None and row.submit_s < before.submit_s:
                what = f"{row.submit_s:g} comes after {before.submit_s:g}: not sorted (see --sort)"
                raise BadTrace(str(self.path), row.row, SUBMITTED[self.format], what)
            before = row
            yield row
        if before is None:
            raise BadTrace(str(self.path), None, None, "holds no jobs that ran on GPUs")

    def _counted(self, rows: Sequence[Row]) -> Iterator[Row]:
        for number, row in enumerate(rows, 1):
            self.share = number / len(rows)
            yield row

    def _passed(self, file: BinaryIO) -> None:
        """So much of the file has been read, what is read ahead included."""
        self.share = file.tell() / max(1, self.path.stat().st_size)

    def _read(self) -> Iterator[Row]:
        try:
            with open(self.path, "rb") as raw, opened(raw) as file:
                if self._is_json:
                    self.format = "philly"
                    yield from read_philly(file, str(self.path), self.skipped)
                else:
                    yield from self._csv(file, raw)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            what = f"its compressed data is broken: {error}"
            raise BadTrace(str(self.path), None, None, what) from error
        except OSError as error:
            raise BadTrace(str(self.path), None, None, error.strerror or str(error)) from error
        except UnicodeDecodeError as error:
            raise BadTrace(str(self.path), None, None, f"is not UTF-8: {error.reason}") from error

    @property
    def _is_json(self) -> bool:
        return ".json" in self.path.suffixes[-2:]

    def _csv(self, file: TextIO, raw: BinaryIO) -> Iterator[Row]:
        csv.field_size_limit(MAX_FIELD)
        path = str(self.path)
        reader = csv.DictReader(_lines(file, path))
        try:
            names = reader.fieldnames or []
            self.format, read = _format(path, names)
            for number, fields in enumerate(reader):
                if number % PASSED == 0:
                    self._passed(raw)
                line = Line(path=path, row=reader.line_num, fields=fields, skipped=self.skipped)
                row = read(line)
                if row is not None:
                    yield row
        except csv.Error as error:
            raise BadTrace(path, reader.line_num, None, str(error)) from error


def opened(raw: BinaryIO) -> TextIO:
    """A file as UTF-8 text, which may be compressed by gzip. Raises OSError."""
    compressed = raw.read(2) == GZIP
    raw.seek(0)
    if compressed:
        return gzip.open(raw, "rt", newline="", encoding="utf-8-sig")
    return io.TextIOWrapper(raw, newline="", encoding="utf-8-sig")


def _lines(file: TextIO, path: str) -> Iterator[str]:
    """Line by line, none of them longer than a line may be. Raises BadTrace."""
    number = 0
    while line := file.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE:
            raise BadTrace(path, number, None, f"is longer than {MAX_LINE:,} characters")
        yield line


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a CSV file, and how its fields are read."""

    path: str
    row: int
    fields: Mapping[str, str | None]
    skipped: dict[str, int]

    def bad(self, column: str, what: str) -> BadTrace:
        """What is wrong with this line."""
        return BadTrace(self.path, self.row, column, what)

    def skip(self, why: str) -> None:
        """Pass this line over."""
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def text(self, column: str) -> str:
        """A field that must be there. Raises BadTrace."""
        value = self.fields.get(column)
        if value is None:
            raise self.bad(column, "is missing")
        return value.strip()

    def number(self, column: str) -> float:
        """A number from 0 on. Raises BadTrace."""
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            raise self.bad(column, f"{text!r} is no number") from None
        if not math.isfinite(value):
            raise self.bad(column, f"{text!r} is no finite number")
        if value < 0:
            raise self.bad(column, f"{text} is negative")
        return value

    def seconds(self, column: str) -> float:
        """A time or a duration. Raises BadTrace."""
        value = self.number(column)
        if value > MAX_S:
            raise self.bad(column, f"{value:g} is more than {MAX_S:g} seconds")
        return value

    def whole(self, column: str) -> int:
        """A whole number from 0 on. Raises BadTrace."""
        value = self.number(column)
        if value != int(value):
            raise self.bad(column, f"{value:g} is no whole number")
        if value > MAX_GPUS:
            raise self.bad(column, f"{value:g} is more than {MAX_GPUS:,}")
        return int(value)

    def time(self, column: str) -> float | None:
        """Seconds since the epoch of a date; None where it is empty. Raises BadTrace."""
        text = self.text(column)
        if not text:
            return None
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise self.bad(column, f"{text!r} is no date and time") from None
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _normalized(line: Line) -> Row | None:
    gpus = line.whole("gpus")
    if gpus == 0:
        raise line.bad("gpus", "must be at least 1")
    return Row(
        row=line.row,
        name=line.text("job"),
        submit_s=line.seconds("submit_s"),
        gpus=gpus,
        duration_s=line.seconds("duration_s"),
        kind=(line.fields.get("kind") or line.fields.get("cluster") or "").strip(),
    )


def _acme(line: Line) -> Row | None:
    gpus = line.whole("gpu_num")
    submit, start, end = (line.time(f"{name}_time") for name in ("submit", "start", "end"))
    if submit is None:
        raise line.bad("submit_time", "is empty")
    if gpus == 0:
        line.skip("no GPUs")
        return None
    if start is None or end is None:
        line.skip("never ran")
        return None
    if end < start:
        raise line.bad("end_time", "lies before start_time: a negative duration")
    return Row(
        row=line.row,
        name=line.text("job_id"),
        submit_s=submit,
        gpus=gpus,
        duration_s=end - start,
        kind=(line.fields.get("type") or "").strip().lower(),
    )


def _itp(line: Line) -> Row | None:
    gpus = line.whole("num_gpu")
    if gpus == 0:
        line.skip("no GPUs")
        return None
    return Row(
        row=line.row,
        name=line.text("job_id"),
        submit_s=line.seconds("submission_time"),
        gpus=gpus,
        duration_s=line.seconds("duration"),
    )


def _fork(line: Line) -> Row | None:
    gpus = line.whole("gpu_workers") * line.whole("gpu_per_worker")
    if gpus == 0:
        line.skip("no GPUs")
        return None
    return Row(
        row=line.row,
        name=line.text("job_id"),
        submit_s=line.seconds("arrival_time"),
        gpus=gpus,
        duration_s=line.number("num_iteration") * line.number("iteration_computing_time"),
        kind="pretrain" if line.text("profiled_network") == "1000" else "other",
    )


FORMATS: dict[str, tuple[tuple[str, ...], Callable[[Line], Row | None]]] = {
    "normalized": (("job", "submit_s", "gpus", "duration_s"), _normalized),
    "acme": (("job_id", "gpu_num", "submit_time", "start_time", "end_time"), _acme),
    "itp": (("job_id", "submission_time", "duration", "num_gpu"), _itp),
    "kalos-fork": (
        (
            "job_id",
            "arrival_time",
            "num_iteration",
            "iteration_computing_time",
            "gpu_workers",
            "gpu_per_worker",
            "profiled_network",
        ),
        _fork,
    ),
}

SUBMITTED = {
    "normalized": "submit_s",
    "acme": "submit_time",
    "itp": "submission_time",
    "kalos-fork": "arrival_time",
    "philly": "submitted_time",
}
"""The column of the submit time."""


def _format(path: str, names: object) -> tuple[str, Callable[[Line], Row | None]]:
    """The format of a header: the one of which most columns are there must be whole."""
    there = {str(name).strip() for name in names} if isinstance(names, list) else set()
    if not there:
        raise BadTrace(path, 1, None, "is empty")
    best = max(FORMATS, key=lambda name: len(there & set(FORMATS[name][0])))
    wanted, read = FORMATS[best]
    missing = [name for name in wanted if name not in there]
    if missing:
        raise BadTrace(path, 1, missing[0], f"is missing ({best} needs {', '.join(wanted)})")
    return best, read
