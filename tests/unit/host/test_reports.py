"""Settings, log lines, presence, shares: what a process says of itself."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import structlog

from rackwright.host import logs
from rackwright.host.config import Settings, parse
from rackwright.host.heartbeats import share
from rackwright.host.metrics import Metrics
from rackwright.host.presence import place_among
from rackwright.host.standing import Standing
from rackwright.wire.ids import MessageId


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """Where the log goes; the logging of other tests is as before afterwards."""
    written = io.StringIO()
    handlers, hook = logging.root.handlers[:], sys.excepthook
    yield written
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    sys.excepthook = hook


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def standing() -> Standing:
    return Standing(service="placer", ordinal=1, cell="lab")


def test_a_log_on_a_full_disk_costs_lines_and_not_the_process(out: io.StringIO) -> None:
    with open("/dev/full", "wb", buffering=0) as disk:
        full = io.TextIOWrapper(disk, write_through=True)
        with pytest.raises(OSError, match="No space left on device"):
            full.write("a line\n")
        logs.set_up(standing(), level=logs.LogLevel.INFO, style=logs.LogFormat.JSON, out=full)
        structlog.get_logger().info("one")
        logging.getLogger("library").error("two")
    logs.set_up(standing(), level=logs.LogLevel.INFO, style=logs.LogFormat.JSON, out=out)
    structlog.get_logger().info("three")
    assert [line["event"] for line in lines(out)] == ["three"]


def test_each_line_says_who_where_and_why(out: io.StringIO) -> None:
    here = standing()
    here.cause = MessageId("wish.lab.7")
    logs.set_up(here, level=logs.LogLevel.INFO, style=logs.LogFormat.JSON, out=out)
    structlog.get_logger().info("job.seen", count=3)
    structlog.get_logger().debug("not.said")
    logging.getLogger("library").error("broke %s", "down")
    first, second = lines(out)
    common = {"service": "placer", "copy": 1, "cell": "lab", "revision": 0, "cause": "wish.lab.7"}
    assert common.items() <= first.items()
    assert common.items() <= second.items()
    assert (first["event"], first["count"], first["level"]) == ("job.seen", 3, "info")
    assert (second["event"], second["logger"]) == ("broke down", "library")


def test_secrets_are_struck_out(out: io.StringIO) -> None:
    logs.set_up(standing(), level=logs.LogLevel.INFO, style=logs.LogFormat.JSON, out=out)
    structlog.get_logger().info(
        "x",
        password="open",
        nkey_seed="SUA",
        more={"token": "t", "url": "nats://bob:open@host:4222"},
        servers=["tls://ann:open@a:1", "nats://b:2"],
    )
    (line,) = lines(out)
    assert line["password"] == line["nkey_seed"] == "***"
    assert line["more"] == {"token": "***", "url": "nats://***@host:4222"}
    assert line["servers"] == ["tls://***@a:1", "nats://b:2"]
    assert "open" not in out.getvalue()


def test_an_uncaught_error_is_a_line_too(out: io.StringIO) -> None:
    logs.set_up(standing(), level=logs.LogLevel.INFO, style=logs.LogFormat.JSON, out=out)
    error = ValueError("nats://bob:open@host")
    sys.excepthook(ValueError, error, None)
    (line,) = lines(out)
    assert line["event"] == "process.died"
    assert "ValueError: nats://***@host" in str(line["exception"])


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("NATS", "CELL", "COPY", "USER", "PASSWORD"):
        monkeypatch.delenv(f"RACKWRIGHT_{name}", raising=False)
    return monkeypatch


def test_settings_come_from_flags_and_from_the_environment(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("RACKWRIGHT_CELL", "north")
    environment.setenv("RACKWRIGHT_COPY", "1")
    environment.setenv("RACKWRIGHT_USER", "placer")
    environment.setenv("RACKWRIGHT_PASSWORD", "open-sesame")
    found = parse("placer", ["--copy", "2", "--nats", "nats://a:1, tls://b:2"])
    assert (found.cell, found.copy) == ("north", 2)
    assert found.nats == ("nats://a:1", "tls://b:2")
    assert found.identity == "placer-2"
    assert found.connect_options().password == "open-sesame"
    assert "open-sesame" not in repr(found)


def test_a_password_may_be_in_a_file(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("open-sesame\n")
    found = parse("placer", ["--user", "bob", "--password-file", str(file)])
    assert found.password == "open-sesame"


def test_a_password_is_given_once(
    environment: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "password"
    file.write_text("open-sesame\n")
    environment.setenv("RACKWRIGHT_PASSWORD", "another")
    with pytest.raises(SystemExit):
        parse("placer", ["--user", "bob", "--password-file", str(file)])
    said = capsys.readouterr().err
    assert "password-file: RACKWRIGHT_PASSWORD is set too" in said
    assert "another" not in said


def test_a_service_may_have_settings_of_its_own(environment: pytest.MonkeyPatch) -> None:
    mine = click.Option(["--depth"], type=int, default=3)
    assert parse("placer", [], [mine]).more == {"depth": 3}
    with pytest.raises(ValueError, match="cell"):
        parse("placer", [], [click.Option(["--cell"])])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--nats", "localhost"], "'localhost' is no URL"),
        (["--nats", "http://bob:open@x"], "'x' is no URL"),
        (["--nats", " , "], "no server"),
        (["--cell", "Lab.1"], "'Lab.1' is not lower-case"),
        (["--copy", "-1"], "--copy"),
        (["--copy", "many"], "--copy"),
        (["--tls-cert", __file__], "together"),
        (["--user", "bob", "--nkey-file", __file__], "not both"),
        (["--nkey-file", "/nowhere"], "does not exist"),
        (["--otlp-endpoint", "collector"], "no URL"),
        (["--otlp-endpoint", "http://c", "--trace-file", "t"], "one place"),
        (["--wrong"], "--wrong"),
    ],
)
def test_wrong_settings_are_named(
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    problem: str,
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse("placer", arguments)
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_help_is_no_error(environment: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as ended:
        parse("placer", ["--help"])
    assert ended.value.code == 0


def test_settings_are_a_value(environment: pytest.MonkeyPatch) -> None:
    assert isinstance(parse("placer", []), Settings)


def test_copies_are_counted_by_ordinal() -> None:
    assert place_among(0, []) == (1, 0)
    assert place_among(2, [0]) == (2, 1)
    assert place_among(1, [3, 0, 3]) == (3, 1)
    assert place_among(1, [1]) == (1, 0)


@pytest.mark.parametrize("present", [1, 2, 3, 7])
def test_every_shard_has_exactly_one_copy(present: int) -> None:
    shards = sorted(shard for ordinal in range(present) for shard in share(present, ordinal))
    assert shards == (["*"] if present == 1 else [f"{n:02d}" for n in range(64)])


def test_metrics_are_taken_from_the_standing_when_asked() -> None:
    here, metrics = standing(), Metrics("placer", 1, "lab")
    metrics.watch(here)
    assert b"rackwright_ready 0.0" in metrics.page()
    here.set_ready()
    assert b"rackwright_ready 1.0" in metrics.page()
