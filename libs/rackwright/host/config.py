"""The settings of a service, each by flag or by environment variable RACKWRIGHT_<NAME>."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from rackwright.bus.options import ConnectOptions
from rackwright.bus.streams import CELL, PRODUCTION, Limits
from rackwright.host.copies import Claim, claim_copy
from rackwright.host.errors import BadSetting
from rackwright.host.logs import LogFormat, LogLevel

PREFIX = "RACKWRIGHT"
URL = re.compile(r"(nats|tls|ws|wss)://[^\s,]+")
MAX_COPY = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one process of a service reaches the bus, and how it reports.

    `copy` is its ordinal, from 0; `claim` holds it where it was taken from a directory. `limits`
    must be those the streams were made with. `more` holds what a service added.
    """

    service: str
    copy: int
    cell: str
    nats: tuple[str, ...]
    user: str | None
    password: str | None = field(repr=False)
    nkey_file: Path | None
    tls_ca: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    replicas: int
    limits: Limits
    http_host: str
    http_port: int
    log_level: LogLevel
    log_format: LogFormat
    state_dir: Path | None
    otlp_endpoint: str | None
    trace_file: Path | None
    claim: Claim | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """The name of the connection."""
        return f"{self.service}-{self.copy}"

    def connect_options(self) -> ConnectOptions:
        """What the bus needs to connect."""
        return ConnectOptions(
            servers=self.nats,
            identity=self.identity,
            inbox=f"{self.service}.{self.copy}",
            user=self.user,
            password=self.password,
            nkey_seed_file=self.nkey_file,
            tls_ca_file=self.tls_ca,
            tls_cert_file=self.tls_cert,
            tls_key_file=self.tls_key,
        )


def _option(name: str, text: str, **more: Any) -> click.Option:
    return click.Option(
        [f"--{name}"],
        help=text,
        envvar=f"{PREFIX}_{name.upper().replace('-', '_')}",
        show_envvar=True,
        show_default=more.get("default") is not None,
        **more,
    )


def _file(name: str, text: str) -> click.Option:
    kind = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
    return _option(name, text, type=kind)


def options() -> list[click.Option]:
    """The flags that every service has."""
    return [
        _option("nats", "Servers, separated by commas.", default="nats://127.0.0.1:4222"),
        _option("cell", "The cell to work for.", default="main"),
        _option("copy", "Which copy this is, from 0.", type=click.IntRange(0, MAX_COPY), default=0),
        _option("copies-dir", "Take the first copy nobody has locked in this directory instead.",
                type=click.Path(file_okay=False, path_type=Path)),
        _option("user", "User at the bus; its password is in RACKWRIGHT_PASSWORD or a file."),
        _file("password-file", "File with the password."),
        _file("nkey-file", "File with the nkey seed, instead of user and password."),
        _file("tls-ca", "Certificates of the authorities to trust."),
        _file("tls-cert", "This client's certificate."),
        _file("tls-key", "This client's key."),
        _option("replicas", "As the streams were made.", type=click.Choice(["1", "3", "5"]),
                default="1"),
        _option("limits", "As the streams were made.",
                type=click.Choice(["default", "production"]), default="default"),
        _option("http-host", "Where to serve /healthz, /readyz and /metrics.",
                default="127.0.0.1"),
        _option("http-port", "0: a free one, which is logged.",
                type=click.IntRange(0, 65_535), default=0),
        _option("log-level", "The least to log.",
                type=click.Choice([level.value for level in LogLevel]), default="info"),
        _option("log-format", "For machines or for people.",
                type=click.Choice([style.value for style in LogFormat]), default="json"),
        _option("state-dir", "Directory for what must outlive the process.",
                type=click.Path(file_okay=False, path_type=Path)),
        _option("otlp-endpoint", "Send traces there (OTLP over HTTP)."),
        _option("trace-file", "Write traces there, a JSON line each.",
                type=click.Path(dir_okay=False, path_type=Path)),
    ]  # fmt: skip


def command(service: str, more: Sequence[click.Option] = ()) -> click.Command:
    """The command line of a service; its result are the settings."""
    names = {option.name for option in options()}
    extra = [str(option.name) for option in more]
    if taken := names.intersection(extra):
        raise ValueError(f"options {sorted(taken)} exist already")

    def settings(**found: Any) -> Settings:
        return _settings(service, found, {name: found.pop(name) for name in extra})

    return click.Command(
        f"rackwright-{service}",
        params=[*options(), *more],
        callback=settings,
        help=f"Run the {service} of a cell.",
    )


def parse(
    service: str, arguments: Sequence[str] | None = None, more: Sequence[click.Option] = ()
) -> Settings:
    """Read flags and environment. Ends the process after --help, and with 2 if they are wrong."""
    made = command(service, more)
    try:
        found = made.main(
            args=None if arguments is None else list(arguments), standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        raise SystemExit(2) from error
    except BadSetting as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(2) from error
    if not isinstance(found, Settings):  # --help has been printed
        raise SystemExit(0)
    return found


def _settings(service: str, found: Mapping[str, Any], more: Mapping[str, Any]) -> Settings:
    password = _password(found["password_file"])
    claim, state_dir = None, found["state_dir"]
    if found["copies_dir"] is not None:
        claim = claim_copy(found["copies_dir"], service, MAX_COPY)
        state_dir = state_dir and state_dir / f"{service}-{claim.copy}"
    settings = Settings(
        service=service,
        copy=found["copy"] if claim is None else claim.copy,
        claim=claim,
        cell=found["cell"],
        nats=_servers(found["nats"]),
        user=found["user"],
        password=password,
        nkey_file=found["nkey_file"],
        tls_ca=found["tls_ca"],
        tls_cert=found["tls_cert"],
        tls_key=found["tls_key"],
        replicas=int(found["replicas"]),
        limits=PRODUCTION if found["limits"] == "production" else Limits(),
        http_host=found["http_host"],
        http_port=found["http_port"],
        log_level=LogLevel(found["log_level"]),
        log_format=LogFormat(found["log_format"]),
        state_dir=state_dir,
        otlp_endpoint=found["otlp_endpoint"],
        trace_file=found["trace_file"],
        more=dict(more),
    )
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    """Raises BadSetting for what does not go together."""
    if CELL.fullmatch(settings.cell) is None:
        raise BadSetting("cell", f"{settings.cell!r} is not lower-case letters, digits and dashes")
    if settings.user is None and settings.password is not None:
        raise BadSetting("user", "a password is given but no user")
    if settings.user is not None and settings.nkey_file is not None:
        raise BadSetting("nkey-file", "give either a user with a password or an nkey, not both")
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise BadSetting("tls-key", "a certificate and its key are needed together")
    if settings.otlp_endpoint is not None and settings.trace_file is not None:
        raise BadSetting("trace-file", "traces go to one place, not to two")
    if settings.otlp_endpoint is not None and "://" not in settings.otlp_endpoint:
        raise BadSetting("otlp-endpoint", f"{settings.otlp_endpoint!r} is no URL")


def _servers(text: str) -> tuple[str, ...]:
    servers = tuple(part.strip() for part in text.split(",") if part.strip())
    for server in servers:
        if URL.fullmatch(server) is None:
            shown = server.rpartition("@")[2]  # what stands before may be a password
            raise BadSetting("nats", f"{shown!r} is no URL such as nats://host:4222")
    if not servers:
        raise BadSetting("nats", "no server is given")
    return servers


def _password(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(f"{PREFIX}_PASSWORD")
    if f"{PREFIX}_PASSWORD" in os.environ:
        raise BadSetting("password-file", f"{PREFIX}_PASSWORD is set too: give one of the two")
    return file.read_text(encoding="utf-8").rstrip("\r\n")
