"""The configuration of the bus is what permissions say today, and nats-server takes it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from rackwright.bus.embedded import find_binary
from rackwright.bus.permissions import Role
from rackwright.bus.serverconfig import FOLDER, files, roles, variable
from rackwright.cli.__main__ import rackwright


def run(*words: str) -> str:
    result = CliRunner().invoke(rackwright, list(words))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", files())
def test_the_files_are_current(name: str) -> None:
    assert (FOLDER / name).read_text() == files()[name], "run `make users`"


def test_each_service_and_each_kind_of_agent_is_a_user_of_its_own() -> None:
    users = roles("main", 1)
    assert set(users) == {"admin", "node-agent", "fleet", *Role}
    inboxes = {
        name: [s for s in permissions.subscribe if s.startswith("_INBOX")]
        for name, permissions in users.items()
        if permissions is not None
    }
    assert inboxes == {name: [f"_INBOX_{name}.>"] for name in users if name != "admin"}


@pytest.mark.parametrize("config", ["nats.conf", "cluster.conf"])
def test_the_server_takes_it(config: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "nats")
    run("credentials", str(tmp_path / "credentials"), "--server", "a", "--server", "b")
    command = [str(find_binary()), "-t", "-c", str(tmp_path / "nats" / config)]
    environment = {**os.environ, "SERVER_NAME": "a"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "is valid" in done.stderr, done.stderr


def test_passwords_are_kept_and_their_owners_alone(tmp_path: Path) -> None:
    run("credentials", str(tmp_path), "--user", "ann")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {*roles("main", 1), "operator", "ann", "nats"}
    texts = {name: (tmp_path / name / "password").read_text() for name in names - {"nats"}}
    assert len(set(texts.values())) == len(texts)
    modes = {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*")}
    assert modes == {0}
    (tmp_path / "ann" / "password").unlink()
    run("credentials", str(tmp_path), "--user", "ann")
    again = {name: (tmp_path / name / "password").read_text() for name in texts}
    assert {name for name in texts if texts[name] != again[name]} == {"ann"}
    told = (tmp_path / "nats" / "passwords.conf").read_text()
    assert f'{variable("ann")}: "{again["ann"]}"' in told


def test_people_may_be_named_by_the_environment_and_have_a_place_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKWRIGHT_PEOPLE", "ann bob")
    run("credentials", str(tmp_path / "all"), "--people-dir", str(tmp_path / "people"))
    assert {path.name for path in (tmp_path / "people").iterdir()} == {"ann", "bob"}
    services = {path.name for path in (tmp_path / "all").iterdir()}
    assert services == {*roles("main", 1), "operator", "nats"}
    password = (tmp_path / "people" / "bob" / "password").read_text()
    told = (tmp_path / "all" / "nats" / "passwords.conf").read_text()
    assert f'{variable("bob")}: "{password}"' in told
    assert "rackwright.main.wish.bob.submit" in run("users")


def test_users_of_other_cells_and_of_single_nodes() -> None:
    said = run("users", "--cell", "lab", "--user", "ann", "--node", "r01/r01-n03")
    assert "rackwright.lab.wish.ann.submit" in said
    assert 'user: "node-r01-n03"' in said
    assert "_INBOX_node-agent.r01-n03.>" in said
    assert "rackwright.main" not in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["users", "--user", "placer"], "user 'placer' exists already"),
        (["users", "--node", "n03"], "must be RACK/NODE"),
        (["users", "--user", "an.n"], "1 to 63 letters"),
        (["users", "--node", "r 1/n"], "1 to 63 letters"),
    ],
)
def test_bad_names_are_refused(words: list[str], why: str) -> None:
    result = CliRunner().invoke(rackwright, words)
    assert result.exit_code == 2
    assert why in result.output
