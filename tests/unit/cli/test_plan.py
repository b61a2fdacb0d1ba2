"""`rackwright plan`: its table, its JSON, its picture, what it learns, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rackwright.cli.__main__ import rackwright
from rackwright.host.archive import Archive
from rackwright.wire.ids import LedgerId
from tests.integration.gateway.written import written
from tests.support.fleets import EPOCH, LEDGER
from tests.unit.cli.test_verify import stored

DAY = 86_400.0


def run(*words: str) -> Result:
    result = CliRunner().invoke(rackwright, ["plan", *words])
    assert "Traceback" not in result.output
    return result


def told(*words: str) -> dict[str, Any]:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.output)
    return answer


def test_json_has_the_names_that_programs_rely_on() -> None:
    found = told("--racks", "128", "--node-mtbi-days", "490", "--unavailable", "0.02")
    sixteen = next(one for one in found["slices"] if one["slice_nodes"] == 16)
    assert round(sixteen["usable_nodes_mean"]) == 2037
    assert sixteen["usable_nodes_p10"] == 2016
    assert found["cell"]["racks"] == 128
    assert found["cell"]["repair_hours"] == pytest.approx(240)
    assert round(found["mtbi"]["rack_days"]) == 27
    assert round(found["mtbi"]["cell_hours"], 1) == 5.1
    assert found["mtbi"]["node_days"] == 490
    assert found["recommendation"]["slice_nodes"] == 16
    assert len(found["assumptions"]) == 3
    assert found["learnt"] is None


def test_the_table_says_what_it_assumes() -> None:
    output = run("--racks", "128", "--unavailable", "0.02").output
    assert "2,037" in output
    assert "1,602" in output
    assert "assumed: nodes fail independently" in output
    assert "17 while nodes are away less than 2.36% of the time, 16 above that" in output


def test_a_price_makes_estimates_and_says_so() -> None:
    words = ("--node-mtbi-days", "490", "--repair-hours", "24", "--gpu-hour-price", "2")
    found = told(*words)
    line = found["slices"][0]
    hours = line["usable_gpu_hours_per_year"]
    assert line["estimate_usable_value_per_year"] == pytest.approx(2 * hours)
    assert line["spares"][0]["estimate_lost_value_with_swap"] > 0
    assert "estimate" in run(*words).output


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"usable.{ending}"
    assert run("--unavailable", "0.02", "--plot", str(path)).exit_code == 0
    start = path.read_bytes()[:5]
    assert start in (b"\x89PNG\r", b"<?xml")


def test_unavailability_alone_has_no_rates() -> None:
    found = told("--unavailable", "0.02")
    assert found["mtbi"] == {"node_days": None, "rack_days": None, "cell_hours": None}
    assert found["recommendation"]["spares"] is None


def archived(root: Path, *, faults: bool) -> Path:
    made = written()
    made.sit("a", "r0", [0, 1])
    if faults:
        made.fail("r0-n02")
    daily = [replace(one, at=EPOCH + DAY * one.seq) for one in stored(made)]
    Archive(root, LedgerId(LEDGER)).write(daily)
    return root


def test_rates_from_a_ledger(tmp_path: Path) -> None:
    path = archived(tmp_path, faults=True)
    found = told("--from-ledger", str(path), "--repair-hours", "24")
    learnt = found["learnt"]
    assert learnt["node_faults"] == 1
    assert learnt["node_mtbi_days"]["value"] == pytest.approx(learnt["node_days"])
    low, high = learnt["node_mtbi_days"]["low"], learnt["node_mtbi_days"]["high"]
    assert low < learnt["node_days"] < high
    assert found["cell"]["node_mtbi_days"] == pytest.approx(learnt["node_days"])
    output = run("--from-ledger", str(path), "--repair-hours", "24").output
    assert "learnt from the ledger: 1 faults of nodes" in output


def test_a_ledger_without_the_end_of_a_fault_says_what_is_missing(tmp_path: Path) -> None:
    result = run("--from-ledger", str(archived(tmp_path, faults=True)))
    assert result.exit_code == 2
    assert "say --repair-hours" in result.output


def test_a_ledger_without_faults_says_its_bound(tmp_path: Path) -> None:
    result = run("--from-ledger", str(archived(tmp_path, faults=False)))
    assert result.exit_code == 2
    assert "no fault of a node" in result.output
    assert "--node-mtbi-days" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "two of --unavailable, --node-mtbi-days and --repair-hours"),
        (["--repair-hours", "4"], "two of --unavailable"),
        (["--unavailable", "1.5"], "unavailable: 1.5 is not possible"),
        (["--unavailable", "-0.1"], "unavailable: -0.1 is not possible"),
        (["--unavailable", "nan"], "unavailable: nan is not possible"),
        (["--unavailable", "0.02", "--racks", "0"], "racks: 0 is not possible"),
        (["--unavailable", "0.02", "--gpus-per-node", "0"], "gpus per node: 0"),
        (["--unavailable", "0.02", "--slices", "19,16"], "slice nodes: 19 is not possible"),
        (["--unavailable", "0.02", "--slices", "a"], "'a': node counts such as"),
        (["--unavailable", "0.02", "--tolerance", "2"], "tolerance: 2 is not possible"),
        (["--unavailable", "0.02", "--job-gpus", "0"], "job GPUs: 0 is not possible"),
        (["--unavailable", "0.02", "--swap-minutes", "-1"], "swap minutes: -1"),
        (["--unavailable", "0.02", "--gpu-hour-price", "-1"], "GPU-hour price: -1"),
        (["--node-mtbi-days", "0", "--repair-hours", "4"], "mtbf_days: 0"),
        (["--rack-fault", "x"], "'x' is no rack fault"),
        (["--unavailable", "0.02", "--plot", "a.pdf"], "ends in .png or .svg"),
        (
            ["--unavailable", "0.02", "--node-mtbi-days", "490", "--repair-hours", "24"],
            "unavailable: 0.02 was given, the other two make it 0.00203666",
        ),
    ],
)
def test_bad_figures_are_named(words: list[str], message: str) -> None:
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    result = run("--from-ledger", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "is not there" in result.output
