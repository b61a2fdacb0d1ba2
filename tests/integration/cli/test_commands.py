"""The commands on a living cell: all its services are processes, its workers are pretended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from rackwright.cli.credentials import Context
from rackwright.cli.session import Where
from tests.integration.cli.conftest import Shell

pytestmark = pytest.mark.integration


def submit(shell: Shell, name: str, nodes: int, **more: Any) -> None:
    """A job that runs until it is cancelled."""
    spec = {"name": name, "nodes": nodes, "pretend_s": 3600, "checkpoint": {"interval_s": 60}}
    code, output = shell("submit", "-", "--wait", input=json.dumps(spec | more))
    assert (code, output) == (0, f"{name}\n")


def cancel(shell: Shell, *names: str) -> None:
    code, output = shell("cancel", *names)
    assert (code, output) == (0, "".join(f"{name} is cancelled\n" for name in names))


def racks(shell: Shell) -> list[str]:
    """The pictures of both racks."""
    code, output = shell("racks")
    assert code == 0, output
    return [line.split()[2] for line in output.splitlines()[1:3]]


def test_up_says_where_everything_is(up: tuple[Shell, str]) -> None:
    shell, line = up
    context = Context.load(shell.state_dir)
    assert line == (
        f"ready: cell main, 2 racks, 12 nodes, 48 GPUs; NATS {context.nats}, HTTP {context.http},"
        f" state in {shell.state_dir}\n"
    )
    with urllib.request.urlopen(f"{context.http}/api/v1/stats") as response:
        assert json.load(response)["installed_gpus"] == 48


def test_a_job_from_its_file_to_its_end(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: life\nnodes: 9\npretend_s: 3600\n")
    words = ("submit", str(file), "--set", "nodes=2")
    code, output = shell(*words, "--wait")
    assert code == 0
    assert output.endswith("life\n")
    assert "warning: no checkpoint interval is given" in output
    assert shell.json("job", "life")["job"]["nodes"] == 2
    code, output = shell(*words, "--patience", "0.5")
    assert (code, "submitted before as the same job, which is running" in output) == (0, True)
    code, output = shell("submit", str(file), "--set", "nodes=3")
    assert (code, "the id is in use by another job of operator" in output) == (1, True)
    cancel(shell, "life")
    types = [line["type"] for line in shell.json("job", "life")["story"]]
    assert types[0] == "job.queued"
    assert set(types[types.index("job.cancelled") + 1 :]) <= {"node.cleaning"}
    code, output = shell("cancel", "life")
    assert (code, "the job is cancelled already" in output) == (1, True)


def test_a_short_job_is_followed_to_its_end(shell: Shell) -> None:
    spec = '{"name": "short", "nodes": 1, "pretend_s": 0.5}'
    code, output = shell("submit", "-", "--follow", input=spec)
    assert code == 0
    told = [word for line in output.splitlines() for word in line.split()[1:2]]
    assert told == ["job.queued", "job.placed", "job.started", "job.finishing", "job.finished"] or (
        told[0],
        told[-1],
    ) == ("job.queued", "job.finished")


def test_a_job_that_can_never_run_is_refused(shell: Shell) -> None:
    code, output = shell("submit", "-", input='{"name": "giant", "nodes": 100}')
    assert code == 1
    assert "refused: can never fit: 100 nodes are asked for, the cell has 12" in output


def test_an_xid_swaps_one_node_and_nothing_else(shell: Shell) -> None:
    submit(shell, "train", 5)
    before = shell.json("job", "train")
    rack = before["slices"][0]["rack"]
    lost = before["ranks"][2]["node"]
    code, output = shell("inject", lost, "--xid", "79")
    assert (code, "GPU has fallen off the bus" in output) == (0, True)
    after = shell.until(
        lambda job: bool(job["swaps"] == 1 and all(rank["ready"] for rank in job["ranks"])),
        "job",
        "train",
    )
    assert after["slices"][0]["rack"] == rack
    kept = [rank for rank in before["ranks"] if rank["rank"] != 2]
    assert [rank for rank in after["ranks"] if rank["rank"] != 2] == [
        rank | {"checkpoint_at": now["checkpoint_at"], "progress_at": now["progress_at"]}
        for rank, now in zip(kept, (r for r in after["ranks"] if r["rank"] != 2), strict=True)
    ]
    assert (after["ranks"][2]["incarnation"], after["ranks"][2]["node"] != lost) == (2, True)
    code, output = shell("node", lost)
    assert (code, "a GPU reported Xid 79" in output) == (0, True)
    code, output = shell("events", "slice.*", "--limit", "1")
    assert (code, f"rank 2 from {lost} to" in output) == (0, True)
    assert shell.json("stats")["recoveries"]["swaps"] == 1
    assert any("%" in picture for picture in racks(shell))
    code, output = shell("repaired", lost, "--action", "reset", "--why", "done")
    assert (code, output) == (0, f"{lost} is back, on probation first\n")
    cancel(shell, "train")


def test_pretended_work_is_called_so_and_prints_nothing(shell: Shell) -> None:
    submit(shell, "only", 1)
    assert "1 ready (pretended)" in shell("job", "only")[1]
    code, output = shell("logs", "only")
    assert (code, output) == (
        1,
        "Error: the agents of only only pretend to run it: nothing is printed\n",
    )
    cancel(shell, "only")


def test_operators_orders(shell: Shell) -> None:
    assert shell("cordon", "r02-n01", "--why", "noise") == (0, "r02-n01 takes no new work\n")
    assert shell.json("node", "r02-n01")["cordoned"] is True
    assert shell("uncordon", "r02-n01") == (0, "r02-n01 takes work again\n")
    assert shell("drain", "r02-n02") == (0, "r02-n02 is being drained\n")
    assert shell("uncordon", "r02-n02") == (0, "r02-n02 takes work again\n")
    assert shell("hold", "r02", "--for", "90m") == (0, "rack r02 is held for 1h30m\n")
    assert shell.json("racks", "r02")["racks"][0]["held_by"] == "operator"
    assert shell("release", "r02") == (0, "rack r02 is released\n")
    assert shell("pause", "defrag", "--for", "1h") == (0, "defrag is paused for 1h\n")
    assert list(shell.json("stats")["paused"]) == ["defrag"]
    assert shell("unpause", "defrag") == (0, "defrag acts again\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("cordon", "r09-n01"), "there is no node r09-n01"),
        (("release", "r01"), "rack r01 is not held"),
        (("resume", "nobody"), "there is no job nobody"),
        (("swap", "nobody", "0"), "there is no job nobody"),
        (("repaired", "r02-n03"), "nothing about this node waits for repair"),
        (("job", "nobody"), "no job 'nobody' is known"),
        (("node", "r09-n01"), "no node 'r09-n01' is known"),
        (("racks", "r09"), "no rack 'r09' is known"),
        (("defrag", "--dry-run", "nobody"), "no living job 'nobody' is known"),
        (("inject", "r09-n01", "--xid", "79"), "is it a virtual one"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_what_is_refused_says_why(shell: Shell, words: tuple[str, ...], told: str) -> None:
    code, output = shell(*words)
    assert (code, told in output) == (1, True), output
    code, output = shell(*words, "--json")
    error = json.loads(output)["error"]
    assert (code, told in error["text"], bool(error["code"])) == (1, True, True), output


@pytest.mark.parametrize("words", ["events", "events --json", "jobs", "racks", "stats", "verify"])
def test_nobody_has_to_read_to_the_end(shell: Shell, words: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "rackwright.cli", *words.split()]
    try:
        done = subprocess.run(
            [*command, "--state-dir", str(shell.state_dir)],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_what_nobody_could_read_is_shown(shell: Shell) -> None:
    assert shell("deadletters") == (0, "nothing was set aside\n")
    asyncio.run(_nonsense(shell.state_dir))
    shell.until(lambda _: len(_letters(shell)) == 1, "stats")
    (letter,) = _letters(shell)
    assert letter["stream"] == "wish"
    assert letter["subject"] == "rackwright.main.wish.operator.cordon"
    assert letter["why"].startswith("node: ")
    code, text = shell("deadletters", "wish")
    assert code == 0
    assert "node: " in text
    assert _letters(shell, "signal") == []


def _letters(shell: Shell, *words: str) -> list[dict[str, Any]]:
    code, text = shell("deadletters", *words, "--json")
    assert code == 0, text
    return [json.loads(line) for line in text.splitlines()]


async def _nonsense(state_dir: Path) -> None:
    async with Where(state_dir=state_dir).reach() as cell:
        await cell.bus.wishes.publish(cell.subjects.wish(cell.user, "wish.cordon"), b'{"node": 7}')


def test_settings_are_changed_one_by_one(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("lent_max_nodes: 1\n")
    assert shell("policy", "set", str(file)) == (0, "the settings are in force\n")
    code, output = shell("policy", "show", "--changed")
    assert (code, output.splitlines()[1].split()[:2]) == (0, ["lent_max_nodes", "1"])
    file.write_text("lent_max_nodes: 2\n")
    assert shell("policy", "set", str(file))[0] == 0


def test_why_a_job_waits_and_what_defragmentation_would_do(shell: Shell) -> None:
    submit(shell, "one", 6, slice_nodes=6)
    submit(shell, "two", 1, gpus=None)
    spec = '{"name": "blocked", "nodes": 6, "slice_nodes": 6, "pretend_s": 60}'
    assert shell("submit", "-", input=spec)[0] == 0
    found = shell.until(lambda job: bool(job["job"]["blocked"]), "job", "blocked")
    assert found["waits"]["text"]
    code, output = shell("jobs", "--state", "queued")
    assert (code, f"waits: {found['job']['blocked']}" in output) == (0, True)
    code, output = shell("defrag", "--dry-run", "blocked")
    assert (code, output.startswith("blocked  ")) == (0, True)
    cancel(shell, "one", "two", "blocked")


def test_a_slip_of_the_pen_uses_up_no_id(shell: Shell) -> None:
    code, output = shell("cancel", "nosuch")
    assert (code, "no job nosuch is known; with --ahead" in output) == (1, True)
    submit(shell, "nosuch", 1)
    cancel(shell, "nosuch")
    code, output = shell("cancel", "nosuch-2", "--ahead")
    assert (code, "a later submit of that id will be refused" in output) == (0, True)
    spec = {"name": "nosuch-2", "nodes": 1, "run": "true"}
    assert shell("submit", "-", "--wait", input=json.dumps(spec))[0] == 1


def test_another_cell_is_named_when_it_is_not_this_one(shell: Shell) -> None:
    code, output = shell("jobs", "--cell", "other")
    assert (code, "is main, not other" in output) == (3, True)
    assert shell("jobs", "--cell", "a.b")[0] == 2
    code, output = shell("jobs", "--nats", "http://127.0.0.1:1")
    assert (code, "must begin with nats" in output) == (2, True)


def test_events_are_followed_over_a_restart_of_the_gateway(shell: Shell) -> None:
    submit(shell, "earlier", 1)
    command = [sys.executable, "-m", "rackwright.cli", "events", "job.queued", "-f", "--json"]
    words = ["--state-dir", str(shell.state_dir), "--limit", "1"]
    with subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True) as followed:
        try:
            assert followed.stdout is not None
            assert json.loads(followed.stdout.readline())["jobs"] == ["earlier"]
            gateways = [
                one
                for one in psutil.process_iter(["cmdline"])
                if "rackwright.gateway" in (line := one.info["cmdline"] or [])
                and str(shell.state_dir) in " ".join(line)
            ]
            assert len(gateways) == 1
            gateways[0].kill()
            submit(shell, "told", 1)
            assert json.loads(followed.stdout.readline())["jobs"] == ["told"]
        finally:
            followed.kill()
    cancel(shell, "earlier", "told")


def test_a_bus_that_is_killed_is_started_again_and_has_lost_nothing(shell: Shell) -> None:
    submit(shell, "early", 2)
    before = shell.until(lambda said: said["job"]["state"] == "running", "job", "early")
    pid = int((shell.state_dir / "nats" / "pid").read_text())
    os.kill(pid, signal.SIGKILL)
    late = {"name": "late", "nodes": 1, "pretend_s": 0.1}
    shell.until_it_works("submit", "-", "--wait", input=json.dumps(late))
    shell.until(lambda said: said["job"]["state"] == "finished", "job", "late")
    assert int((shell.state_dir / "nats" / "pid").read_text()) != pid
    assert shell.json("job", "early")["job"]["slices"] == before["job"]["slices"]
    cancel(shell, "early")


def test_everything_that_happened_was_safe(shell: Shell) -> None:
    code, output = shell("verify")
    assert code == 0, output
    assert output.splitlines()[-1] == "result: no violation"
    assert shell.json("verify")["violations"] == []


def test_another_user_of_the_cell_is_told_apart(shell: Shell) -> None:
    code, output = shell("jobs", "--user", "nobody")
    assert (code, "did not admit nobody" in output) == (3, True)
