"""The tables of who says what agree with the types, the subjects and the streams."""

import re

import pytest

from rackwright.bus.streams import Kind, Limits, declare, subject_root
from rackwright.wire.catalog import (
    ALL_TYPES,
    ANSWERS,
    CHANNELS,
    KEEPING,
    SAYS,
    Channel,
    Party,
    may_say,
)
from rackwright.wire.entries import ENTRIES
from rackwright.wire.entries.node import Observation
from rackwright.wire.ids import CellName, JobId, LedgerId, NodeId, Owner, RackId
from rackwright.wire.message import Entry
from rackwright.wire.subjects import Subjects
from rackwright.wire.wishes import ANY_WISH

CELL = CellName("alpha")
AT = Subjects(CELL)
R, N = RackId("r07"), NodeId("r07-n03")
BUILT = {
    "ledger": AT.entry("node.repair_requested"),
    "told": AT.told("job.placed"),
    "signal": AT.signal(R, N),
    "status": AT.status(R, N),
    "heartbeat": AT.heartbeat(R, N),
    "echo": AT.echo(R),
    "snap": AT.snapshot(LedgerId("led-1"), 120, "manifest"),
    "dead": AT.dead("wish"),
    "query": AT.query("jobs"),
    "assign": "$KV.rackwright_alpha_assign." + AT.assignment_key(R),
    "jobs": "$KV.rackwright_alpha_jobs." + AT.job_key(JobId("j-1")),
    **{wish.TYPE: AT.wish(Owner("ann"), wish.TYPE) for wish in ANY_WISH},
}


def pattern(address: str) -> re.Pattern[str]:
    """Subjects that an address describes."""
    return re.compile(re.sub(r"\\{\w+\\}", r"[^.]+", re.escape(address)))


def test_every_type_is_on_a_channel() -> None:
    assert {name for channel in CHANNELS for name in channel.types} == set(ALL_TYPES)


def test_every_entry_has_somebody_who_says_it() -> None:
    assert {name for said in SAYS.values() for name in said} == set(ENTRIES)
    assert all(list(said) == sorted(said) for said in SAYS.values())


def test_every_wish_is_answered_by_one_service_that_may_refuse() -> None:
    assert set(ANSWERS) == {wish.TYPE for wish in ANY_WISH}
    assert all("wish.refused" in SAYS[service] for service in ANSWERS.values())


def test_names_are_unlike() -> None:
    assert len({channel.key for channel in CHANNELS}) == len(CHANNELS)
    assert set(KEEPING) == {channel.keeping for channel in CHANNELS}


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.key)
def test_addresses_are_the_subjects_that_are_built(channel: Channel) -> None:
    assert pattern(channel.address).fullmatch(BUILT[channel.key])


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.key)
def test_addresses_lie_in_their_streams(channel: Channel) -> None:
    subject = BUILT[channel.key]
    holding = [kind for kind in Kind if subject.startswith(subject_root(CELL, kind))]
    expected = [] if channel.keeping == "none" else [Kind(channel.keeping)]
    assert [kind for kind in holding if kind is not Kind.INTAKE] == expected


def test_retention_is_told_as_declared() -> None:
    assert str(Limits().signal_per_node) in KEEPING["signal"].retention
    assert f"{Limits().dead_age_s / 86_400:.0f} days" in KEEPING["dead"].retention
    ages = {kind: spec.max_age_s for kind, spec in declare(CELL).items()}
    assert (ages[Kind.LEDGER], ages[Kind.WISH]) == (0, 0)


@pytest.mark.parametrize("kind", ENTRIES.values(), ids=lambda kind: kind.TYPE)
def test_observations_are_of_the_health_monitor(kind: type[Entry]) -> None:
    sayers = {party for party, said in SAYS.items() if kind.TYPE in said}
    assert not issubclass(kind, Observation) or sayers == {Party.HEALTH_MONITOR}


@pytest.mark.parametrize(
    ("party", "type_name", "allowed"),
    [
        (Party.SPARE_MANAGER, "slice.swapped", True),
        (Party.PLACER, "slice.swapped", False),
        (Party.OWNER, "wish.submit", True),
        (Party.OWNER, "job.placed", False),
        (Party.NODE_AGENT, "signal.fault", True),
        (Party.NODE_AGENT, "wish.submit", False),
        (Party.DISPATCHER, "value.assignments", True),
    ],
)
def test_who_may_say_what(party: Party, type_name: str, allowed: bool) -> None:
    assert may_say(party, type_name) is allowed
