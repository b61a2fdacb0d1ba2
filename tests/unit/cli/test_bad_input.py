"""Bad input is told in a line, with an exit code that says whose fault it is; no traceback."""

import fcntl
import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from rackwright.cli.__main__ import rackwright
from rackwright.cli.credentials import Context

JOB = "name: a\nnodes: 1\n"


def invoke(state: Path, *words: str, **more: str) -> Result:
    """A command on a state directory without a cell."""
    runner = CliRunner(env={"RACKWRIGHT_STATE_DIR": str(state), "RACKWRIGHT_NATS": None})
    result = runner.invoke(rackwright, list(words), **more)  # type: ignore[arg-type]
    raised = result.exception
    assert raised is None or isinstance(raised, SystemExit | click.ClickException), raised
    assert "Traceback" not in result.output
    return result


REACHING = (
    ["jobs"],
    ["job", "a"],
    ["job", "a", "--watch"],
    ["cancel", "a"],
    ["resume", "a"],
    ["swap", "a", "0"],
    ["racks"],
    ["node", "n"],
    ["events"],
    ["events", "-f"],
    ["stats"],
    ["defrag", "--dry-run"],
    ["verify"],
    ["cordon", "n"],
    ["drain", "n"],
    ["uncordon", "n"],
    ["repaired", "n"],
    ["hold", "r", "--for", "1h"],
    ["release", "r"],
    ["pause", "defrag", "--for", "1h"],
    ["unpause", "defrag"],
    ["policy", "show"],
    ["inject", "n", "--xid", "79"],
)


@pytest.mark.parametrize("words", REACHING, ids=" ".join)
def test_where_no_cell_was_started_it_says_how_to_start_one(
    tmp_path: Path, words: list[str]
) -> None:
    result = invoke(tmp_path, *words)
    assert result.exit_code == 3
    assert "rackwright up" in result.output


def test_a_cell_that_is_gone_cannot_be_reached(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("x")
    Context(
        nats="nats://127.0.0.1:1",
        cell="main",
        user="operator",
        password_file=str(tmp_path / "password"),
        http="",
    ).save(tmp_path)
    result = invoke(tmp_path, "jobs")
    assert result.exit_code == 3
    assert "cell main at nats://127.0.0.1:1" in result.output


@pytest.mark.parametrize("text", ["{", "[]", '{"nats": 1}'])
def test_a_broken_context_is_named(tmp_path: Path, text: str) -> None:
    Context.path(tmp_path).write_text(text)
    result = invoke(tmp_path, "jobs")
    assert result.exit_code == 2
    assert "context.json cannot be read" in result.output


BAD = (
    (["submit", "none.yaml"], "none.yaml: No such file"),
    (["submit", "."], "Is a directory"),
    (["job", "a.b"], "job: 'a.b' is not allowed"),
    (["job", "x" * 10_000], "is not allowed"),
    (["cancel"], "Missing argument"),
    (["cancel", "a", "b>"], "job: 'b>' is not allowed"),
    (["resume", "*"], "is not allowed"),
    (["swap", "a", "-1"], "No such option"),
    (["swap", "a", "x"], "must be a whole number of 0 or more, not 'x'"),
    (["jobs", "--state", "busy"], "'busy' is not one of"),
    (["jobs", "--limit", "0"], "must be a whole number from 1 to 1000, not '0'"),
    (["jobs", "--limit", "9" * 5000], f"not '{'9' * 40}...'"),
    (["frobnicate"], "no command is called 'frobnicate'; there are up, demo"),
    (["job-s"], "no command is called 'job-s'; did you mean jobs or job"),
    (["logs", "a", "x"], "must be a whole number of 0 or more"),
    (["logs", "a/0"], "job: 'a/0' is not allowed"),
    (["racks", "a/b"], "rack: 'a/b' is not allowed"),
    (["node", "n.1"], "node: 'n.1' is not allowed"),
    (["events", "--since", "-3"], "must be a whole number of 0 or more, not '-3'"),
    (["cordon", ""], "node: '' is not allowed"),
    (["repaired", "n", "--action", "pray"], "'pray' is not one of"),
    (["hold", "r"], "Missing option '--for'"),
    (["hold", "r", "--for", "soon"], "is no duration"),
    (["hold", "r", "--for", "0s"], "'0s' is not above zero; say for instance 90s"),
    (["pause", "lunch", "--for", "1h"], "'lunch' is not one of"),
    (["pause", "defrag"], "Missing option '--for'"),
    (["pause", "defrag", "--for", "-1h"], "'-1h' is not above zero"),
    (["pause", "defrag", "--for", "99999d"], "'99999d' is too long"),
    (["maintain", "r", "--in", "-2h", "--for", "1h"], "'--in': '-2h' is not above zero"),
    (["inject", "n"], "say one of --xid, --line and --silence"),
    (["inject", "n", "--xid", "79", "--silence", "3s"], "say one of"),
    (["inject", "n", "--xid", "79", "--symptom"], "--symptom goes with --xid 145 and 149"),
    (["inject", "n", "--xid", "abc"], "must be a whole number from 1 to 999, not 'abc'"),
    (["defrag"], "say --dry-run"),
    (["defrag", "--dry-run", "a b"], "is not allowed"),
    (["policy", "show", "colour"], "there is no setting 'colour'"),
    (["policy", "set", "none.yaml"], "none.yaml: No such file"),
    (["completion", "tcsh"], "'tcsh' is not one of"),
    (["up", "--cell", "Main"], "--cell: 'Main' is not"),
    (["up", "--racks", "0"], "must be a whole number"),
    (["up", "--copies", "placer"], "must be SERVICE=N"),
    (["up", "--copies", "cook=2"], "services are placer"),
    (["up", "--topology", "none.yaml"], "none.yaml: No such file"),
    (["up", "--policy", "none.yaml"], "none.yaml: No such file"),
    (["up", "--owner", "a.b"], "owner: 'a.b' is not allowed"),
    (["jobs", "--password-file", "none", "--nats", "nats://127.0.0.1:1"], "password file"),
)


@pytest.mark.parametrize(("words", "text"), BAD, ids=[" ".join(w)[:40] for w, _ in BAD])
def test_bad_words_are_told_before_anybody_is_asked(
    tmp_path: Path, words: list[str], text: str
) -> None:
    result = invoke(tmp_path, *words)
    assert result.exit_code == 2, result.output
    assert text in result.output


@pytest.mark.parametrize(("words", "text"), BAD, ids=[" ".join(w)[:40] for w, _ in BAD])
def test_with_json_so_is_what_is_wrong(tmp_path: Path, words: list[str], text: str) -> None:
    result = invoke(tmp_path, *words, "--json")
    assert result.exit_code == 2, result.output
    error = told_as_json(result)
    assert error["code"] in ("usage", "bad-input")
    assert text in error["text"] or "No such option '--json'" in error["text"]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["job", "a.b"], "job"),
        (["cordon", ""], "node"),
        (["jobs", "--limit", "0"], "--limit"),
        (["hold", "r"], "--for"),
        (["swap", "a", "x"], "rank"),
        (["jobs", "--colour"], "--colour"),
        (["jobs", "--nats", "http://a", "--cell", "c"], "--nats"),
        (["defrag"], None),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_json_names_the_field(tmp_path: Path, words: list[str], field: str | None) -> None:
    assert told_as_json(invoke(tmp_path, *words, "--json"))["field"] == field


@pytest.mark.parametrize("words", REACHING, ids=" ".join)
def test_with_json_a_cell_that_is_not_there_is_told_so(tmp_path: Path, words: list[str]) -> None:
    result = invoke(tmp_path, *words, "--json")
    assert result.exit_code == 3
    assert told_as_json(result)["code"] == "unreachable"


def told_as_json(result: Result) -> dict[str, Any]:
    """The error, which is all that was printed."""
    error: dict[str, Any] = json.loads(result.output)["error"]
    assert set(error) == {"code", "field", "text"}
    return error


FILES = (
    ("name: a\n", "say how large"),
    ("name: a\nnodes: 0\n", "nodes"),
    ("name: a\nnodes: 1\nnods: 2\n", "did you mean 'nodes'"),
    ("name: a\ngpus: 5\n", "5 GPUs are no whole number of nodes"),
    ("name: a.b\nnodes: 1\n", "name"),
    ("name: a\nid: 'a*'\nnodes: 1\n", "id"),
    ("- 1\n", "must be a job"),
    ("", "is empty"),
    ("{", "line"),
    ('{"job": "a", "spec": {}}', "spec"),
)


@pytest.mark.parametrize(("text", "told"), FILES, ids=range(len(FILES)))
def test_bad_job_files_name_the_field(tmp_path: Path, text: str, told: str) -> None:
    result = invoke(tmp_path, "submit", "-", input=text)
    assert result.exit_code == 2, result.output
    assert told in result.output or "standard input" in result.output


def test_a_job_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(b"name: \xff\n")
    result = invoke(tmp_path, "submit", str(file))
    assert (result.exit_code, "not UTF-8" in result.output) == (2, True)
    file.write_bytes(b"name: a\nrun: " + b"x" * 1_000_000)
    result = invoke(tmp_path, "submit", str(file))
    assert (result.exit_code, "bytes, at most" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("nodes", "must be KEY=VALUE"),
        ("=3", "must be KEY=VALUE"),
        ("name.first=3", "name is no mapping"),
        ("nodes={", "cannot be read as a value"),
        ("nodes=" + "1" * 10_000, "cannot be read as a value"),
        ("nodes=x", "nodes"),
        ("colour=red", "colour"),
    ],
)
def test_bad_settings_of_a_job(tmp_path: Path, setting: str, told: str) -> None:
    result = invoke(tmp_path, "submit", "-", "--set", setting, input=JOB)
    assert result.exit_code == 2, result.output
    assert told in result.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("slice_node: 3\n", "did you mean 'slice_nodes'"),
        ("slice_nodes: 0\n", "slice_nodes"),
        ("fence_after_s: never\n", "fence_after_s"),
        ("[]", "must be a policy"),
    ],
)
def test_bad_policy_files_name_the_field(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    for words in (["policy", "set", str(file)], ["up", "--policy", str(file)]):
        result = invoke(tmp_path / "state", *words)
        assert result.exit_code == 2, result.output
        assert told in result.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "queue_guarantee: {a: 100, b: 45}\n",
            "queue_guarantee 145 is in all more than the 144 GPUs of the cell",
        ),
        ("queue_gpus: {a: 145}\n", "queue_gpus.a 145 is more than the 144 GPUs of the cell"),
        ("spare_racks: 2\n", "spare_racks 2 leaves none of the 2 racks of the cell to work"),
    ],
)
def test_a_policy_file_that_promises_more_than_the_racks_have(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    bus = ["--nats", "nats://127.0.0.1:1", "--user", "admin"]
    for words in (
        ["up", "--racks", "2", "--nodes-per-rack", "18"],
        ["create", "--racks", "2x18x4", *bus],
    ):
        result = invoke(tmp_path / "state", *words, "--policy", str(file))
        assert result.exit_code == 2, result.output
        assert told in " ".join(result.output.split())


def test_a_topology_with_a_node_in_two_racks(tmp_path: Path) -> None:
    file = tmp_path / "topology.yaml"
    file.write_text("racks:\n- {rack: a, nodes: n1}\n- {rack: b, nodes: n1}\n")
    result = invoke(tmp_path / "state", "up", "--topology", str(file))
    assert result.exit_code == 2
    assert "node 'n1' is in rack 'a'" in result.output


def test_two_cells_do_not_share_a_directory(tmp_path: Path) -> None:
    with (tmp_path / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = invoke(tmp_path, "up", "--state-dir", str(tmp_path))
    assert result.exit_code == 1
    assert f"another `rackwright up` runs in {tmp_path}" in result.output


def test_a_state_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = invoke(tmp_path, "up", "--state-dir", str(tmp_path / "file" / "below"))
    assert (result.exit_code, "Not a directory" in result.output) == (2, True)


def test_settings_may_come_from_standard_input(tmp_path: Path) -> None:
    wrong = invoke(tmp_path, "policy", "set", "-", input="fence_after_s: -1\n")
    assert wrong.exit_code == 2
    assert "standard input" in wrong.output
    assert "fence_after_s" in wrong.output
    right = invoke(tmp_path, "policy", "set", "-", input="fence_after_s: 60\n")
    assert right.exit_code == 3, "read, and no cell to ask"
