"""The secret of what agents ask each other: given in a file, or no port is opened."""

from pathlib import Path

import pytest

from rackwright.agent.config import neighbours_key, options
from rackwright.host.config import Settings, parse
from rackwright.host.errors import BadSetting
from rackwright.wire.neighbours import key_of


@pytest.fixture(autouse=True)
def with_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKWRIGHT_PASSWORD", "the agent's own, which opens nothing")


def settings(*arguments: str) -> Settings:
    return parse("node-agent", ["--user", "node-agent", "--rack", "r1", *arguments], options())


def test_without_a_secret_nobody_is_asked() -> None:
    assert neighbours_key(settings()) is None


def test_the_key_is_made_from_the_secret_and_the_cell(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef\n")
    found = neighbours_key(settings("--neighbours-key", str(file), "--cell", "north"))
    assert found == key_of("0123456789abcdef", "north")


@pytest.mark.parametrize(
    ("data", "said"), [(b"0123456789abcde\n", "16 characters or more"), (b"\xff" * 20, "ASCII")]
)
def test_a_weak_secret_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "secret"
    file.write_bytes(data)
    with pytest.raises(BadSetting, match=said):
        neighbours_key(settings("--neighbours-key", str(file)))
