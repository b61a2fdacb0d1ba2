"""How to reach the bus, and as whom."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path

IDENTITY = re.compile(r"[A-Za-z0-9_-]{1,64}")
INBOX = re.compile(r"([A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64})?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """How to reach the bus and as whom. Times in seconds.

    `identity` names the connection and, unless `inbox` is given, its inboxes, so that nobody can
    read another's answers. An `inbox` of two words keeps apart what shares a user.
    Credentials: `user` and `password`, or `nkey_seed_file`.
    """

    servers: tuple[str, ...]
    identity: str
    inbox: str = ""
    user: str | None = None
    password: str | None = None
    nkey_seed_file: Path | None = None
    tls_ca_file: Path | None = None
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    tls_hostname: str | None = None
    connect_s: float = 10.0
    connect_attempt_s: float = 2.0
    reconnect_s: float = 0.25
    ping_s: float = 3.0
    pings_out: int = 2
    request_s: float = 1.0

    def __post_init__(self) -> None:
        if not IDENTITY.fullmatch(self.identity):
            raise ValueError(f"identity {self.identity!r} is not [A-Za-z0-9_-], at most 64")
        if not INBOX.fullmatch(self.inbox):
            raise ValueError(f"inbox {self.inbox!r} is not one or two words [A-Za-z0-9_-]")
        if not self.servers:
            raise ValueError("no server to connect to")

    @property
    def inbox_prefix(self) -> str:
        """The root of all subjects this connection is answered on."""
        return f"_INBOX_{self.inbox or self.identity}"

    def tls(self) -> ssl.SSLContext | None:
        """A TLS 1.3 context if any TLS file is given; None: plain."""
        if self.tls_ca_file is None and self.tls_cert_file is None:
            return None
        context = ssl.create_default_context(cafile=self.tls_ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if self.tls_cert_file is not None:
            context.load_cert_chain(self.tls_cert_file, self.tls_key_file)
        return context
