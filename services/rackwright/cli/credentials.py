"""The users of a local cell and their passwords, made once and kept readable by their owner only.

Even on one machine each service has a user of its own that may do only what it needs, so that what
runs here runs with the same rights as in production.
"""

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright.bus.options import ConnectOptions
from rackwright.bus.permissions import Role, User, agent, operator, service

ADMIN = "admin"
AGENT = "node-agent"
NEIGHBOURS = "neighbours"  # no user: the secret of what agents ask each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Passwords by user, in the files of `root`."""

    root: Path

    def password_file(self, user: str) -> Path:
        """The file that holds a user's password."""
        return self.root / user

    def password(self, user: str) -> str:
        """A user's password, made when it is first asked for."""
        path = self.password_file(user)
        if not path.exists():
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(fd, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(24))
        return path.read_text(encoding="ascii")

    def users(self, cell: str, copies: dict[str, int], owners: Sequence[str]) -> list[User]:
        """Every user of the cell: administrator, services by copy, agents, operators."""
        made = [User(name=ADMIN, password=self.password(ADMIN))]
        for role in Role:
            for copy in range(copies.get(role.value, 1)):
                name = f"{role.value}-{copy}"
                rights = service(cell, role, f"{role}.{copy}")
                made.append(User(name=name, password=self.password(name), permissions=rights))
        for copy in range(copies.get(AGENT, 1)):
            name = f"{AGENT}-{copy}"
            rights = agent(cell, f"fleet.{copy}", None)
            made.append(User(name=name, password=self.password(name), permissions=rights))
        for owner in owners:
            rights = operator(cell, owner)
            made.append(User(name=owner, password=self.password(owner), permissions=rights))
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """How a command finds the cell: written by `up`, read by every other command."""

    nats: str
    cell: str
    user: str
    password_file: str
    http: str

    @classmethod
    def path(cls, state_dir: Path) -> Path:
        """Where it is kept."""
        return state_dir / "context.json"

    def save(self, state_dir: Path) -> None:
        """Keep it."""
        values = {name: getattr(self, name) for name in self.__slots__}
        self.path(state_dir).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, state_dir: Path) -> "Context":
        """Raises FileNotFoundError where no cell was started, ValueError, TypeError."""
        return cls(**json.loads(cls.path(state_dir).read_text(encoding="utf-8")))

    def connect_options(self, identity: str) -> ConnectOptions:
        """What the bus needs to connect. The identity must be the user: it names the inboxes."""
        return ConnectOptions(
            servers=(self.nats,),
            identity=identity,
            user=self.user,
            password=Path(self.password_file).read_text(encoding="ascii").strip(),
        )
