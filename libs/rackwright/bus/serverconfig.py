"""The users of a nats-server in its own configuration language, straight from `permissions`.

`python -m rackwright.bus.serverconfig` writes the files of deploy/nats anew. They hold no
password: each is the variable `PASSWORD_<user>` of a file that they include.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from rackwright.bus.permissions import Permissions, Place, Role, agent, operator, service, user

FOLDER = Path(__file__).parents[3] / "deploy" / "nats"
ADMIN = "admin"
NODE_AGENT = "node-agent"
FLEET = "fleet"
HEAD = """\
# Who may say and hear what on the bus of cell {cell}, streams of {replicas} {copies}.
# Written by `{command}` from libs/rackwright/bus/permissions.py: change that.
# Passwords (plain or bcrypt) are the variables PASSWORD_*, made by `rackwright credentials`.
include ../credentials/nats/passwords.conf

"""


def variable(name: str) -> str:
    """The variable of the server's configuration that holds a user's password."""
    return "PASSWORD_" + name.replace("-", "_")


def roles(cell: str, replicas: int) -> dict[str, Permissions | None]:
    """The users every cell has: administrator, services, and the two kinds of agents.

    All copies of a service are one user. So are all agents of real nodes here, which may speak for
    any node but make no consumer and hear no orders to fail; `node_user` keeps them apart.
    """
    anywhere = [Place(shard="*", rack="*", node="*")]
    return {
        ADMIN: None,
        **{role.value: service(cell, role, role.value, replicas=replicas) for role in Role},
        NODE_AGENT: agent(cell, NODE_AGENT, anywhere),
        FLEET: agent(cell, FLEET, None),
    }


def everybody(
    cell: str, replicas: int, operators: Iterable[str] = (), people: Iterable[str] = ()
) -> dict[str, Permissions | None]:
    """`roles`, operators, and people who only submit jobs. Raises ValueError if a name is taken."""
    users = roles(cell, replicas)
    named = [(name, operator(cell, name)) for name in operators]
    named += [(name, user(cell, name)) for name in people]
    for name, permissions in named:
        if name in users:
            raise ValueError(f"user {name!r} exists already")
        users[name] = permissions
    return users


def users_conf(
    cell: str,
    replicas: int,
    users: dict[str, Permissions | None],
    command: str = "rackwright users",
) -> str:
    """The text of users.conf."""
    copies = "copy" if replicas == 1 else "copies"
    head = HEAD.format(cell=cell, replicas=replicas, copies=copies, command=command)
    entries = "".join(_entry(name, permissions) for name, permissions in users.items())
    return f"{head}authorization {{\n  timeout: 5\n  users: [\n{entries}  ]\n}}\n"


def passwords_conf(passwords: dict[str, str]) -> str:
    """The text of passwords.conf: the variables, quoted, as a number is no password."""
    return "".join(f"{variable(name)}: {json.dumps(text)}\n" for name, text in passwords.items())


def routes_conf(servers: Sequence[str], password: str) -> str:
    """The text of routes.conf, for the cluster block: who may join, and where the others are."""
    auth = f"authorization {{ user: route, password: {json.dumps(password)}, timeout: 5 }}\n"
    urls = [json.dumps(f"nats-route://route:{password}@{server}:6222") for server in servers]
    return auth + "routes: [\n" + "".join(f"  {url}\n" for url in urls) + "]\n"


def _entry(name: str, permissions: Permissions | None) -> str:
    lines = [f"      user: {json.dumps(name)}", f"      password: ${variable(name)}"]
    if permissions is not None:
        lines.append("      permissions: {")
        lines += _subjects("publish", permissions.publish)
        lines += _subjects("subscribe", permissions.subscribe)
        if permissions.answers:
            lines.append('        allow_responses: { max: 1, expires: "1m" }')
        lines.append("      }")
    return "    {\n" + "\n".join(lines) + "\n    }\n"


def _subjects(verb: str, subjects: Sequence[str]) -> list[str]:
    rows = [f"            {json.dumps(subject)}" for subject in subjects]
    return [f"        {verb}: {{", "          allow: [", *rows, "          ]", "        }"]


def files() -> dict[str, str]:
    """The committed files of deploy/nats by name: cell main on one server and on three."""
    operators = ("operator",)
    return {
        name: users_conf("main", replicas, everybody("main", replicas, operators), "make users")
        for name, replicas in (("users.conf", 1), ("users-cluster.conf", 3))
    }


def main() -> None:
    """Write the files."""
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
