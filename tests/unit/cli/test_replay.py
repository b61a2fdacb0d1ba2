"""`rackwright replay` on the recorded ledger of a simulated cell; verify reads the same."""

import json
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
        (["--job", "nobody"], 1, "nothing was decided about nobody"),
    ],
)
def test_bad_input_is_named(recorded: Path, words: list[str], code: int, message: str) -> None:
    result = command("replay", str(recorded), *words)
    assert result.exit_code == code
    assert message in result.output


def test_a_ledger_that_is_not_there(tmp_path: Path) -> None:
    assert "is not there" in command("replay", str(tmp_path / "none")).output


def test_recording_needs_a_directory(recorded: Path) -> None:
    jobs = str(recorded.parent.parent / "jobs.csv")
    result = command("simulate", "--trace", jobs, "--record")
    assert result.exit_code == 2
    assert "--record needs --out" in result.output
