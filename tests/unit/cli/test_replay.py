"""`rackwright replay` on the recorded ledger of a simulated cell; verify reads the same."""

import errno
import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rackwright.cli.__main__ import rackwright

TRACE = "job,submit_s,gpus,duration_s\na,0,64,3600\nb,60,64,600\nc,120,64,1200\n"


def command(*words: str) -> Result:
    result = CliRunner().invoke(rackwright, list(words))
    assert "Traceback" not in result.output
    return result


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two racks, three jobs of a rack each."""
    place = tmp_path_factory.mktemp("recorded")
    (place / "jobs.csv").write_text(TRACE, encoding="utf-8")
    words = ["--topology", "2x18", "--trace", str(place / "jobs.csv"), "--record"]
    result = command("simulate", *words, "--out", str(place / "out"))
    assert result.exit_code == 0, result.output
    return place / "out" / "ledger-rackwright"


def replayed(recorded: Path, *words: str) -> dict[str, Any]:
    result = command("replay", str(recorded), *words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_at_any_time(recorded: Path) -> None:
    early = replayed(recorded, "--at", "300")
    assert early["jobs"] == {"queued": 1, "running": 2}
    assert early["queued"][0]["job"] == "job-4"
    assert early["queued"][0]["why"]
    late = replayed(recorded)
    assert late["jobs"] == {}
    assert late["seq"] > early["seq"]


def test_at_any_sequence(recorded: Path) -> None:
    assert replayed(recorded, "--to", "3")["seq"] == 3


def test_why_a_job_waited_and_was_placed(recorded: Path) -> None:
    story = replayed(recorded, "--job", "job-4")["story"]
    kinds = [one["type"] for one in story]
    assert kinds[0] == "job.queued"
    assert kinds.index("job.blocked") < kinds.index("job.placed") < kinds.index("job.finished")
    output = command("replay", str(recorded), "--job", "job-4", "--at", "300").output
    assert "job.blocked" in output
    assert "1 queued, 2 running" in output


def test_the_record_of_a_simulation_passes_verification(recorded: Path) -> None:
    result = command("verify", "--archive", str(recorded))
    assert result.exit_code == 0, result.output
    assert "result: no violation" in result.output


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--to", "0"], 2, "--to: 0 is not possible"),
        (["--to", "99999999"], 2, "the ledger ends at"),
        (["--at", "-1"], 2, "--at: -1 is not possible"),
        (["--at", "1e9"], 2, "--at: 1e+09 is not possible: the ledger ends after 7"),
        (["--at", "nan"], 2, "--at: nan is not possible"),
        (["--to", "x"], 2, "'x' is not a valid integer"),
        (["--job", "nobody"], 1, "nobody up to sequence"),
        (["--job", "nobody"], 1, "jobs are: job-2, job-3, job-4"),
    ],
)
def test_bad_input_is_named(recorded: Path, words: list[str], code: int, message: str) -> None:
    result = command("replay", str(recorded), *words)
    assert result.exit_code == code
    assert message in result.output


def test_a_ledger_that_is_not_there(tmp_path: Path) -> None:
    assert "is not there" in command("replay", str(tmp_path / "none")).output


def lines_of(recorded: Path) -> list[str]:
    (segment,) = recorded.glob("*/*.jsonl")
    return segment.read_text(encoding="utf-8").splitlines(keepends=True)


def changed(line: str, old: str, new: str) -> str:
    assert old in line
    return line.replace(old, new)


BROKEN: dict[str, tuple[Callable[[list[str]], str], str]] = {
    "empty": (lambda _: "", "is empty: a segment has a head and commits"),
    "only a head": (lambda lines: lines[0], "holds no commit"),
    "text": (lambda _: "hello\n", ":1: is not JSON"),
    "a report": (lambda _: '{"policies": []}\n', ":1: is no head of a segment"),
    "no head": (lambda lines: "".join(lines[1:]), ":1: is no head of a segment"),
    "cut off": (lambda lines: "".join(lines)[:-100], "is cut off"),
    "a gap": (lambda lines: "".join(lines[:3] + lines[4:]), ":4: 3 had to come"),
    "begins late": (lambda lines: "".join(lines[:1] + lines[5:]), "1 had to come"),
    "another cell": (
        lambda lines: "".join(
            [*lines[:5], changed(lines[5], "rackwright.simulated.", "rackwright.b."), *lines[6:]]
        ),
        ":6: is of cell 'b', not 'simulated'",
    ),
    "another ledger": (
        lambda lines: changed(lines[0], "simulated-", "b-") + "".join(lines[1:]),
        "does not create ledger b-",
    ),
    "endless time": (
        lambda lines: "".join(
            [*lines[:3], re.sub(r'"at":[0-9.]+', '"at":1e999', lines[3], count=1)]
        ),
        ":4: is no commit",
    ),
    "no subject": (
        lambda lines: lines[0] + re.sub(r'"subject":"[^"]*"', '"subject":"x"', lines[1], count=1),
        "cannot be read at 1: subject",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("words", [(), ("--from", "9", "--policy", "no-swap")])
def test_what_is_no_ledger_is_told(
    recorded: Path, tmp_path: Path, broken: str, words: tuple[str, ...]
) -> None:
    make, said = BROKEN[broken]
    path = tmp_path / "segment.jsonl"
    path.write_text(make(lines_of(recorded)), encoding="utf-8")
    result = command("replay", str(path), *words)
    assert result.exit_code == 1, result.output
    assert said in result.output.replace("\n", " ")


def test_what_is_no_file_of_lines_is_told(recorded: Path, tmp_path: Path) -> None:
    (segment,) = recorded.glob("*/*.jsonl")
    packed = tmp_path / "segment.jsonl.gz"
    packed.write_bytes(gzip.compress(segment.read_bytes()))
    assert "is compressed: unpack it first" in command("replay", str(packed)).output
    assert "is no file and no directory" in command("replay", os.devnull).output
    assert "must hold one ledger, holds none" in command("replay", str(tmp_path)).output
    above = command("replay", str(recorded.parent))
    assert above.exit_code == 1
    assert "ledger-rackwright holds no segments" in above.output.replace("\n", " ")


def test_a_file_that_may_not_be_read(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    result = command("replay", str(recorded))
    assert result.exit_code == 1
    assert result.output.replace("\n", "").endswith("ledger-rackwright: Permission denied")


def test_recording_needs_a_directory(recorded: Path) -> None:
    jobs = str(recorded.parent.parent / "jobs.csv")
    result = command("simulate", "--trace", jobs, "--record")
    assert result.exit_code == 2
    assert "--record needs --out" in result.output


@pytest.fixture(scope="module")
def stormy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four racks in which nodes fail all the time."""
    place = tmp_path_factory.mktemp("stormy")
    words = ["--topology", "4x18", "--generate", "kalos=0.3,itp=0.7", "--load", "0.9"]
    words += ["--days", "0.5", "--unavailable", "0.06", "--repair-hours", "4", "--record"]
    result = command("simulate", *words, "--out", str(place))
    assert result.exit_code == 0, result.output
    return place / "ledger-rackwright"


def decided_again(recorded: Path, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = replayed(recorded, *words)  # type: ignore[assignment]
    return found


def test_decided_again_by_the_same_policy_it_comes_to_the_same(stormy: Path) -> None:
    record, same, _ = decided_again(stormy, "--from", "300", "--set", "swap_start_s=61")
    assert record["counts"]["slice.swapped"] > 0
    assert same["counts"] == record["counts"]
    assert same["finished"] == record["finished"]
    assert same["waiting_still"] == record["waiting_still"]
    assert same["waits_s"] == pytest.approx(record["waits_s"], abs=1.0)
    assert same["passed_over"] == 0


def test_without_swaps_jobs_are_requeued_on_the_same_faults(stormy: Path) -> None:
    record, same, changed = decided_again(stormy, "--from", "300", "--policy", "no-swap")
    assert changed["counts"]["slice.swapped"] == 0 < same["counts"]["slice.swapped"]
    assert changed["counts"]["job.requeued"] > same["counts"]["job.requeued"]
    assert changed["waits_s"].keys() == record["waits_s"].keys()


def test_a_slice_size_that_fits_no_second_job_lets_it_wait(recorded: Path) -> None:
    words = ("--from", str(replayed(recorded, "--at", "10")["seq"]))
    _, same, changed = decided_again(recorded, *words, "--set", "slice_nodes=8")
    assert same["waits_s"].keys() == changed["waits_s"].keys() == {"job-3", "job-4"}
    output = command("replay", str(recorded), *words, "--set", "slice_nodes=8").output
    assert "difference" in output
    assert "decided again" in output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "300"], "--policy or --set"),
        (["--policy", "no-swap"], "--from SEQUENCE"),
        (["--from", "300", "--to", "400", "--policy", "no-swap"], "without --to"),
        (["--from", "0", "--policy", "no-swap"], "--from: 0 is not possible: 1 to "),
        (["--from", "99999", "--policy", "no-swap"], "--from: 99999 is not possible"),
        (["--from", "1", "--policy", "no-swap"], "no racks yet"),
        (["--from", "300", "--policy", "best"], "unknown policy 'best'"),
        (["--from", "300", "--policy", "no-swap,scatter"], "one at a time"),
        (["--from", "300", "--policy", "fcfs"], "orders arrivals"),
        (["--from", "300", "--set", "spares=3"], "SETTING=VALUE"),
        (["--from", "300", "--set", "spares_large"], "SETTING=VALUE"),
        (["--from", "300", "--set", "spares_large=-1"], "spares_large"),
        (["--from", "300", "--set", "lent_weight=.nan"], "lent_weight"),
    ],
)
def test_what_cannot_be_decided_again_is_told(stormy: Path, words: list[str], said: str) -> None:
    result = command("replay", str(stormy), *words)
    assert result.exit_code == 2, result.output
    assert said in result.output.replace("\n", " ")
