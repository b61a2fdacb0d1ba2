"""Traces in each of their forms, and every way in which one can be bad, by row and column."""

import gzip
import json
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import pytest

from rackwright.simulator.readers import Trace
from rackwright.simulator.workload import BadTrace, Row

ACME = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time\n"


def trace(tmp_path: Path, text: str, name: str = "trace.csv") -> Trace:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return Trace(path)


def rows(tmp_path: Path, text: str, name: str = "trace.csv") -> list[Row]:
    return list(trace(tmp_path, text, name).rows())


def brief(found: list[Row]) -> list[tuple[str, float, int, float, str]]:
    return [(one.name, one.submit_s, one.gpus, one.duration_s, one.kind) for one in found]


def test_normalized(tmp_path: Path) -> None:
    text = "job,submit_s,gpus,duration_s,kind\na,0,64,104.0,pretrain\nb,5.5,1,0,other\n"
    assert brief(rows(tmp_path, text)) == [
        ("a", 0.0, 64, 104.0, "pretrain"),
        ("b", 5.5, 1, 0.0, "other"),
    ]


def test_acme_in_its_own_columns(tmp_path: Path) -> None:
    text = ACME + (
        "1,u,8,64,960,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
        "2023-05-17 11:01:16+00:00\n"
        "2,u,1,0,4,Other,COMPLETED,2023-05-17 11:01:58+00:00,2023-05-17 11:02:08+00:00,"
        "2023-05-17 11:02:16+00:00\n"
        "3,u,1,8,4,Other,CANCELLED,2023-05-17 11:02:58+00:00,,\n"
    )
    found = trace(tmp_path, text)
    assert brief(list(found.rows())) == [("1", 1684321258.0, 64, 8.0, "other")]
    assert found.format == "acme"
    assert found.skipped == {"no GPUs": 1, "never ran": 1}


def test_itp_in_its_own_columns(tmp_path: Path) -> None:
    text = "job_id,submission_time,duration,num_gpu\nx,16566,3890,4\n"
    assert brief(rows(tmp_path, text)) == [("x", 16566.0, 4, 3890.0, "")]


def test_the_fork_of_kalos(tmp_path: Path) -> None:
    text = (
        "job_id,arrival_time,num_iteration,iteration_computing_time,gpu_workers,gpu_per_worker,"
        "profiled_network\n0,0.0,208,0.5,8,8.0,500\n3,58324.0,136,0.5,16,8.0,1000\n"
    )
    assert brief(rows(tmp_path, text)) == [
        ("0", 0.0, 64, 104.0, "other"),
        ("3", 58324.0, 128, 68.0, "pretrain"),
    ]


def philly(name: str, submitted: str, *attempts: Mapping[str, object]) -> dict[str, object]:
    return {"jobid": name, "vc": "v", "submitted_time": submitted, "attempts": list(attempts)}


def test_philly_in_its_own_form_adds_its_attempts(tmp_path: Path) -> None:
    detail = [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]
    one = {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:13:00", "detail": detail}
    two = {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:00:30", "detail": detail}
    open_ = {"start_time": "2017-10-07 02:00:00", "end_time": "None", "detail": detail}
    text = json.dumps(
        [
            philly("late", "2017-10-07 01:11:39", one, two, open_),
            philly("early", "2017-10-07 01:00:00", one),
            philly("never", "2017-10-07 01:00:00"),
        ]
    )
    found = trace(tmp_path, text, "jobs.json")
    assert [(one.name, one.gpus, one.duration_s) for one in found.rows()] == [
        ("early", 3, 60.0),
        ("late", 3, 90.0),
    ]
    assert found.skipped == {"never ran": 1}


HEAD = "job,submit_s,gpus,duration_s\n"


@pytest.mark.parametrize(
    ("text", "row", "column", "what"),
    [
        ("", 1, None, "is empty"),
        (HEAD, None, None, "holds no jobs"),
        ("job,submit_s,gpus\na,0,1\n", 1, "duration_s", "is missing"),
        (HEAD + "a,0,1,-5\n", 2, "duration_s", "-5 is negative"),
        (HEAD + "a,0,1,5\nb,1,1,nan\n", 3, "duration_s", "'nan' is no finite number"),
        (HEAD + "a,0,1,inf\n", 2, "duration_s", "no finite number"),
        (HEAD + "a,0,1.5,5\n", 2, "gpus", "1.5 is no whole number"),
        (HEAD + "a,0,0,5\n", 2, "gpus", "must be at least 1"),
        (HEAD + "a,0,99999999,5\n", 2, "gpus", "is more than"),
        (HEAD + "a,x,1,5\n", 2, "submit_s", "'x' is no number"),
        (HEAD + "a,0,1\n", 2, "duration_s", "is missing"),
        (HEAD + "a,9,1,5\nb,3,1,5\n", 3, "submit_s", "3 comes after 9: not sorted"),
        (ACME + "1,u,1,8,1,O,F,,,\n", 2, "submit_time", "is empty"),
        (ACME + "1,u,1,8,1,O,F,yesterday,,\n", 2, "submit_time", "'yesterday' is no date"),
        (
            ACME + "1,u,1,8,1,O,F,2023-05-17,2023-05-18,2023-05-17\n",
            2,
            "end_time",
            "negative duration",
        ),
    ],
)
def test_a_bad_trace_names_row_and_column(
    tmp_path: Path, text: str, row: int | None, column: str | None, what: str
) -> None:
    with pytest.raises(BadTrace) as caught:
        rows(tmp_path, text)
    assert (caught.value.row, caught.value.column) == (row, column)
    assert what in str(caught.value)


@pytest.mark.parametrize("text", ["{}", "[1]", '[{"jobid": 1', "nothing"])
def test_a_bad_philly_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadTrace, match=r"is no (list of jobs|job|JSON)"):
        rows(tmp_path, text, "jobs.json")


def test_sorted_on_demand(tmp_path: Path) -> None:
    text = HEAD + "a,9,1,5\nb,3,1,5\n"
    assert [one.name for one in trace(tmp_path, text).rows(sort=True)] == ["b", "a"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="No such file"):
        list(Trace(tmp_path / "none.csv").rows())


def test_rows_come_before_the_file_is_read_to_its_end(tmp_path: Path) -> None:
    text = HEAD + "a,0,1,5\n" * 50_000 + "b,0,1,-1\n"
    found = trace(tmp_path, text).rows()
    assert next(found).name == "a"


MANY = "job,submit_s,gpus,duration_s\n" + "".join(f"j{at},{at},1,60\n" for at in range(1000))


def test_a_compressed_trace_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(MANY.encode()))
    assert [row.name for row in Trace(path).rows()] == [f"j{at}" for at in range(1000)]


@pytest.mark.parametrize("broken", ["cut", "garbled"])
def test_a_compressed_trace_that_is_broken(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "trace.csv.gz"
    data = gzip.compress(MANY.encode())
    path.write_bytes(data[:-200] if broken == "cut" else data[:40] + b"\xff" * 200 + data[240:])
    with pytest.raises(BadTrace, match="its compressed data is broken"):
        list(Trace(path).rows())


def test_what_has_no_lines_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    with path.open("wb") as file:
        file.truncate(1 << 32)  # 4 GB of nought bytes, of which the disk keeps none
    with pytest.raises(BadTrace, match="row 1: is longer than 1,048,576 characters"):
        list(Trace(path).rows())


@pytest.mark.parametrize("column", ["submit_s", "duration_s"])
def test_no_time_is_beyond_all_measure(tmp_path: Path, column: str) -> None:
    values = {"job": "a", "submit_s": "0", "gpus": "1", "duration_s": "1"} | {column: "1e300"}
    text = ",".join(values) + "\n" + ",".join(values.values()) + "\n"
    with pytest.raises(BadTrace, match=rf"row 2, column {column}: 1e\+300 is more than"):
        rows(tmp_path, text)


def peak(path: Path) -> int:
    """Bytes that reading it took at most, beside those that were there."""
    tracemalloc.start()
    try:
        for _ in Trace(path).rows():
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packed", [False, True])
def test_ten_times_the_rows_take_no_more_memory(tmp_path: Path, packed: bool) -> None:
    short, long = tmp_path / "short.csv", tmp_path / "long.csv"
    for path, count in ((short, 1_000), (long, 10_000)):
        lines = "".join(f"job-{row},{row * 90},4,600\n" for row in range(count))
        data = f"job,submit_s,gpus,duration_s\n{lines}".encode()
        path.write_bytes(gzip.compress(data) if packed else data)
    peak(short)  # what is made once by the first reading
    assert peak(long) < peak(short) + 65_536


def test_how_far_it_is_read(tmp_path: Path) -> None:
    lines = "".join(f"job-{row},{row},4,600\n" for row in range(5_000))
    made = trace(tmp_path, f"job,submit_s,gpus,duration_s\n{lines}")
    shares = [made.share for _ in made.rows()]
    assert shares == sorted(shares)
    assert shares[0] < 0.1
    assert 0.4 < shares[2_500] < 0.6
    assert shares[-1] > 0.9
    halves = [made.share for _ in made.rows(sort=True)]
    assert (halves[2_499], halves[-1]) == (0.5, 1.0)
