"""`rackwright simulate`: its table, its JSON, its report, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rackwright.cli.__main__ import rackwright

TRACE = "job,submit_s,gpus,duration_s\na,0,64,3600\nb,60,2,600\nc,120,4,1200\n"


def simulate(*words: str) -> Result:
    result = CliRunner().invoke(rackwright, ["simulate", *words])
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE, encoding="utf-8")
    return str(path)


def results(*words: str) -> list[dict[str, Any]]:
    result = simulate(*words, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.output)["policies"]
    return found


def test_policies_are_compared_on_the_same_jobs(trace: str) -> None:
    found = results("--topology", "3x18", "--trace", trace, "--policy", "rackwright,scatter")
    assert [one["policy"] for one in found] == ["rackwright", "scatter"]
    assert all(one["jobs"]["finished"] == 3 and not one["partial"] for one in found)


def test_a_report_is_one_page_with_its_pictures(trace: str, tmp_path: Path) -> None:
    out = tmp_path / "report"
    result = simulate("--topology", "3x18", "--trace", trace, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "goodput" in result.output
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 4
    assert "Partial" not in page
    assert page.count("<img alt='") == 4
    assert 'name="viewport"' in page
    whole = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert whole["partial"] is False
    assert whole["policies"][0]["jobs"]["finished"] == 3
    assert (out / "events-rackwright.jsonl").exists()


def test_a_topology_file(trace: str, tmp_path: Path) -> None:
    path = tmp_path / "cell.yaml"
    path.write_text(
        'racks:\n  - {rack: a, nodes: "n[01-18]"}\n  - {rack: b, nodes: "n[19-36]"}\n',
        encoding="utf-8",
    )
    (found,) = results("--topology", str(path), "--trace", trace)
    assert found["installed_gpu_s"] > 0


def test_drawn_jobs(tmp_path: Path) -> None:
    words = ("--topology", "2x18", "--generate", "itp", "--load", "0.3", "--days", "0.2")
    (one,), (two,) = results(*words, "--seed", "4"), results(*words, "--seed", "4")
    assert one["gpu_s"] == two["gpu_s"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "say either --trace or --generate"),
        (["--generate", "itp"], "--generate needs --days"),
        (["--generate", "x=1", "--days", "1"], "'x=1': NAME=SHARE with kalos or itp"),
        (["--generate", "itp=0", "--days", "1"], "'itp=0': NAME=SHARE"),
        (["--generate", "itp", "--days", "0"], "'--days': must be a number from 0.001"),
        (["--generate", "itp", "--days", "nan"], "'--days': must be a number from 0.001"),
        (
            ["--generate", "itp", "--days", "1", "--load", "-1"],
            "'--load': must be a number from 0.001",
        ),
        (["--generate", "itp", "--days", "1", "--warm-days", "2"], "--warm-days: 2"),
        (
            ["--generate", "itp", "--days", "1", "--unavailable", "1.5"],
            "'--unavailable': must be a number from 0 to 0.99",
        ),
        (
            ["--generate", "itp", "--days", "1", "--repair-hours", "0"],
            "'--repair-hours': must be a number from 0.001",
        ),
        (["--generate", "itp", "--days", "1", "--policy", "best"], "unknown policy 'best'"),
        (["--topology", "0x18", "--generate", "itp", "--days", "1"], "RACKSxNODES"),
        (["--topology", "2x63", "--generate", "itp", "--days", "1"], "63 nodes a rack are not"),
        (["--topology", "2x18x17", "--generate", "itp", "--days", "1"], "17 GPUs a node are not"),
        (["--topology", "20001x18", "--generate", "itp", "--days", "1"], "20001 racks are not"),
        (
            ["--generate", "itp", "--days", "1", "--unavailable", "nan"],
            "'--unavailable': must be a number from 0 to 0.99",
        ),
        (
            ["--generate", "itp", "--days", "1", "--rack-mtbi-days", "-1"],
            "'--rack-mtbi-days': must be a number from 0.001",
        ),
        (["--trace", "none.csv"], "none.csv: No such file"),
    ],
)
def test_bad_input_is_named(words: list[str], message: str) -> None:
    result = simulate(*words)
    assert result.exit_code == 2, result.output
    assert message in result.output


@pytest.mark.parametrize("policies", ["rackwright", "rackwright,scatter"])
def test_a_bad_row_is_named_whichever_process_read_it(tmp_path: Path, policies: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(TRACE + "d,130,4,-1\n", encoding="utf-8")
    words = ["--policy", policies, "--processes", "2"]
    result = simulate("--topology", "2x18", "--trace", str(path), *words)
    assert result.exit_code == 2
    assert "bad.csv, row 5, column duration_s: -1 is negative" in result.output


def test_a_policy_with_other_settings_is_compared_beside_it(trace: str) -> None:
    changed = "rackwright:slice_nodes=8:spares_large=1"
    found = results("--topology", "3x18", "--trace", trace, "--policy", f"rackwright,{changed}")
    assert [one["policy"] for one in found] == ["rackwright", changed]
    shares = [one["gpu_s"]["spare"] for one in found]
    assert shares[0] != shares[1]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("rackwright,rackwright", "rackwright is named twice"),
        ("rackwright:foo=1", "unknown setting 'foo': docs/policies.md lists them"),
        ("rackwright:slice_nodes", "'slice_nodes' is no SETTING=VALUE"),
        ("rackwright:slice_nodes=-3", "slice_nodes: must be greater than or equal to 1"),
        ("best:slice_nodes=3", "unknown policy 'best'"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(trace: str, policy: str, message: str) -> None:
    result = simulate("--topology", "3x18", "--trace", trace, "--policy", policy)
    assert result.exit_code == 2
    assert message in result.output


def test_what_is_too_large_is_counted_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE + "d,130,9999,10\n", encoding="utf-8")
    result = simulate("--topology", "3x18", "--trace", str(path))
    shown = {" ".join(line.split()) for line in result.output.splitlines()}
    assert {"submitted 4", "rejected 1", "finished 3"} <= shown


def test_side_by_side_the_same_is_found(trace: str) -> None:
    found = []
    for processes in ("1", "3"):
        words = ["--policy", "rackwright,scatter,fcfs", "--processes", processes]
        policies = results("--topology", "3x18", "--trace", trace, "--unavailable", "0.02", *words)
        for one in policies:
            del one["cpu_s"], one["engine"]["memory_mb"]
        found.append(policies)
    assert [one["policy"] for one in found[0]] == ["rackwright", "scatter", "fcfs"]
    assert found[0] == found[1]
