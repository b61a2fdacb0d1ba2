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
    assert "17 below 2.36% of the time, 16 above that" in output


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
    found = told("--from-ledger", str(path), "--repair-hours", "0.1")
    learnt = found["learnt"]
    assert learnt["node_faults"] == 1
    assert learnt["node_mtbi_days"]["value"] == pytest.approx(learnt["node_days"])
    low, high = learnt["node_mtbi_days"]["low"], learnt["node_mtbi_days"]["high"]
    assert low < learnt["node_days"] < high
    assert found["cell"]["node_mtbi_days"] == pytest.approx(learnt["node_days"])
    shape = ("racks", "nodes_per_rack", "gpus_per_node")
    assert [found["cell"][name] for name in shape] == learnt["cell"] != [140, 18, 4]
    larger = told("--from-ledger", str(path), "--repair-hours", "0.1", "--racks", "16")
    assert [larger["cell"][name] for name in shape] == [16, *learnt["cell"][1:]]
    output = run("--from-ledger", str(path), "--repair-hours", "0.1").output
    assert "learnt from the ledger: 1 faults of nodes" in output


def test_a_ledger_too_short_to_plan_with_is_told_so(tmp_path: Path) -> None:
    result = run("--from-ledger", str(archived(tmp_path, faults=True)), "--repair-hours", "24")
    assert result.exit_code == 2
    assert "not one node is in a whole slice then" in result.output
    assert "(learnt from 1 faults in 0." in result.output


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
        (["--unavailable", "1"], "--unavailable: 1 is not possible: not one node is in a whole"),
        (["--unavailable", "0.9", "--slices", "18"], "not one node is in a whole slice then"),
        (["--unavailable", "0.02", "--slices", "19,16"], "--slices: 19 is not possible: 1 to 18"),
        (["--unavailable", "0.02", "--slices", "a"], "node counts such as 8,16,18, each from 1 to"),
        (["--unavailable", "0.02", "--slices", ","], "node counts such as 8,16,18, each from 1 to"),
        (["--unavailable", "0.02", "--slices", "9" * 99], "node counts such as 8,16,18"),
        (
            ["--unavailable", "0.02", "--spares", "18"],
            "--spares: 18 is not possible: a rack has 18",
        ),
        (["--unavailable", "0.02", "--rack-fault", "a=nan/4"], "days between a faults: nan"),
        (["--unavailable", "0.02", "--rack-fault", "a=1e-9/4"], "days between a faults: 1e-09"),
        (["--unavailable", "0.02", "--rack-fault", "a=9/1e9"], "repair hours of a: 1e+09"),
        (
            ["--unavailable", "0.02", "--plot", "/nowhere/a.png"],
            "/nowhere/a.png: cannot be written",
        ),
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


BOUNDED = (
    "--racks",
    "--nodes-per-rack",
    "--gpus-per-node",
    "--unavailable",
    "--node-mtbi-days",
    "--repair-hours",
    "--spares",
    "--tolerance",
    "--job-gpus",
    "--swap-minutes",
    "--move-minutes",
    "--restart-minutes",
    "--reload-minutes",
    "--checkpoint-minutes",
    "--gpu-hour-price",
)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e308", "9" * 400, "x", ""])
@pytest.mark.parametrize("option", BOUNDED)
def test_no_figure_is_beyond_its_bounds(option: str, value: str) -> None:
    result = run("--node-mtbi-days", "490", "--repair-hours", "24", option, value)
    assert result.exit_code == 2, result.output
    assert f"'{option}': must be a" in result.output


@pytest.mark.parametrize(
    "words",
    [
        "--node-mtbi-days 0.001 --repair-hours 0.001",
        "--node-mtbi-days 100000 --repair-hours 0.001",
        "--unavailable 0.02 --nodes-per-rack 62 --gpus-per-node 16 --spares 61",
        "--unavailable 0 --nodes-per-rack 1 --racks 1 --spares 0",
        "--node-mtbi-days 490 --repair-hours 24 --nodes-per-rack 2 --tolerance 0",
        "--node-mtbi-days 490 --repair-hours 24 --spares 17 --gpu-hour-price 100000",
        "--unavailable 0.6 --slices 3,16",
        "--unavailable 0.5",
    ],
)
def test_at_its_bounds_it_recommends_what_is_usable(words: str) -> None:
    found = told(*words.split())
    chosen = found["recommendation"]["slice_nodes"]
    best = max(line["usable_nodes_mean"] for line in found["slices"])
    for line in found["slices"]:
        quantiles = [line[f"usable_nodes_{name}"] for name in ("p1", "p10", "p50", "p90")]
        assert quantiles == sorted(quantiles)
        assert 0 <= line["usable_share"] <= 1
        assert line["slice_nodes"] != chosen or line["usable_nodes_mean"] >= best / 2


@pytest.mark.parametrize("name", ["", "none", "notes.txt"])
def test_what_is_no_ledger_is_said_to_be_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    result = run("--from-ledger", str(tmp_path / name))
    assert result.exit_code in (1, 2), result.output
    assert (name or str(tmp_path)) in result.output


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    result = run("--from-ledger", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "is not there" in result.output
