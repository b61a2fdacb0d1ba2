"""The table of permissions: every decision has few owners, and nobody owns a stream."""

from __future__ import annotations

from collections import defaultdict

from rackwright.bus.match import matches
from rackwright.bus.permissions import SERVICES, Permissions, Place, Role, User, service, user
from rackwright.bus.permissions import agent as agent_permissions
from rackwright.bus.streams import Kind, stream_name

# Entries that more than one service may decide, with all that may.
SHARED = {
    "job.failed": {Role.PLACER, Role.SPARE_MANAGER},
    "job.notified": {Role.PLACER, Role.DEFRAGMENTER},
    "job.requeued": {Role.PLACER, Role.SPARE_MANAGER},
    "node.cordoned": {Role.PLACER, Role.HEALTH_MONITOR},
    "slice.moved": {Role.SPARE_MANAGER, Role.DEFRAGMENTER},
    "wish.refused": {Role.PLACER, Role.HEALTH_MONITOR},
}


def may(permissions: Permissions, subject: str) -> bool:
    return any(matches(pattern, subject) for pattern in permissions.publish)


def test_each_entry_has_one_owner_unless_it_is_known_to_be_shared() -> None:
    owners: dict[str, set[Role]] = defaultdict(set)
    for role, rights in SERVICES.items():
        for entry in rights.entries:
            owners[entry].add(role)
    assert {entry: roles for entry, roles in owners.items() if len(roles) > 1} == SHARED


def test_no_service_may_change_delete_or_purge_what_it_does_not_own() -> None:
    purges = {
        Role.PLACER: {Kind.WISH},
        Role.DISPATCHER: {Kind.LEDGER, Kind.SNAP},
    }
    for role in Role:
        permissions = service("lab", role, role)
        for kind in Kind:
            name = stream_name("lab", kind)
            assert not may(permissions, f"$JS.API.STREAM.UPDATE.{name}")
            assert not may(permissions, f"$JS.API.STREAM.DELETE.{name}")
            assert may(permissions, f"$JS.API.STREAM.PURGE.{name}") == (
                kind in purges.get(role, set())
            )


def test_with_replicas_nobody_makes_streams() -> None:
    for role in Role:
        permissions = service("lab", role, role, replicas=3)
        assert not [s for s in permissions.publish if s.startswith("$JS.API.STREAM.CREATE")]


def test_inboxes_are_private() -> None:
    everybody = [service("lab", role, role) for role in Role]
    everybody += [user("lab", "ann"), agent_permissions("lab", "a1", None)]
    inboxes = [s for p in everybody for s in p.subscribe if s.startswith("_INBOX")]
    assert len(inboxes) == len(everybody) == len(set(inboxes))
    assert "_INBOX.>" not in inboxes


def test_an_agent_of_one_node_speaks_for_that_node() -> None:
    permissions = agent_permissions("lab", "a1", [Place(shard="07", rack="r1", node="n1")])
    for kind in ("hb", "signal", "status"):
        assert may(permissions, f"rackwright.lab.{kind}.07.r1.n1")
        assert not may(permissions, f"rackwright.lab.{kind}.07.r1.n10")
        assert not may(permissions, f"rackwright.lab.{kind}.07.r10.n1")
    assert not [s for s in permissions.publish if "CONSUMER" in s or "$KV." in s.split("GET.")[0]]


def test_a_user_is_written_as_the_server_reads_it() -> None:
    permissions = Permissions(publish=("a",), subscribe=("b",), answers=True)
    allowed = {
        "publish": {"allow": ["a"]},
        "subscribe": {"allow": ["b"]},
        "allow_responses": {"max": 1, "expires": "1m"},
    }
    assert User(name="n", password="p", permissions=permissions).config() == {
        "user": "n",
        "password": "p",
        "permissions": allowed,
    }
    assert User(name="n", nkey="UABC").config() == {"nkey": "UABC"}
