"""The page that explains the system says what the code does."""

import re
from dataclasses import fields

import pytest

from rackwright.core.jobs import ENDED, TRANSITIONS, JobState
from rackwright.wire.asyncapi import PARAMETER
from rackwright.wire.catalog import CHANNELS, KEEPING, SAYS, Channel, Party
from rackwright.wire.entries import ENTRIES
from rackwright.wire.message import Commit, Envelope
from rackwright.wire.reasons import Cause
from rackwright.wire.signals import ENDED as WORKER_ENDED
from rackwright.wire.signals import WorkerState
from tests.contracts.files import PROTO

TEXT = (PROTO / "README.md").read_text(encoding="utf-8")
EDGE = re.compile(r"^ +(\S+) --> (\S+)(?: : (.+))?$", re.MULTILINE)


def edges(heading: str) -> list[tuple[str, str, str]]:
    """The arrows of the picture under a heading."""
    section = TEXT.split(f"### {heading}\n")[1].split("\n### ")[0]
    picture = section.split("```mermaid")[1].split("```")[0]
    return EDGE.findall(picture)


def test_the_picture_of_a_job_is_the_table() -> None:
    drawn = [edge for edge in edges("Job") if "[*]" not in edge]
    assert sorted(drawn) == sorted(
        (str(before), str(after), name) for (before, name), after in TRANSITIONS.items()
    )
    ends = {before for before, after, _ in edges("Job") if after == "[*]"}
    assert ends == {str(state) for state in ENDED}
    assert {name for edge in edges("Job") for name in edge[:2]} == {"[*]", *map(str, JobState)}


def test_the_picture_of_a_worker_has_its_states() -> None:
    drawn = {name for edge in edges("Worker") for name in edge[:2]}
    assert drawn == {"[*]", *map(str, WorkerState)}
    leading_on = {before for before, _, _ in edges("Worker")}
    assert {state for state in WorkerState if str(state) not in leading_on} == WORKER_ENDED


@pytest.mark.parametrize("heading", ["Job", "Node", "Plan"])
def test_pictures_name_entries_that_exist(heading: str) -> None:
    named = {name for *_, label in edges(heading) for name in label.split(", ") if label}
    assert named - set(ENTRIES) == set()


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.key)
def test_every_subject_is_in_the_table(channel: Channel) -> None:
    wish = re.sub(r"(\.wish\.\{owner\}\.)\w+", r"\1{verb}", channel.address)
    assert f"| `{wish}` |" in TEXT
    assert PARAMETER.search(wish)


def test_every_stream_and_every_sayer_is_named() -> None:
    streams = TEXT.split("### Streams, by what may be lost")[1].split("\n### ")[0]
    assert [
        name for name in KEEPING if not re.search(rf"^\| .*\b{name}\b", streams, re.MULTILINE)
    ] == []
    said = TEXT.split("### Who may publish what")[1].split("\n## ")[0]
    words = {Party.ADMIN: "administrator", Party.NODE_AGENT: "agent", Party.OWNER: "owner"}
    named = {party for party in Party if words.get(party, str(party)) in said}
    assert named == set(Party)
    assert set(SAYS) <= named


def test_the_shapes_and_causes_are_told() -> None:
    for shape in (Commit, Envelope):
        told = ", ".join(f"`{field.name}`" for field in fields(shape))
        assert told in " ".join(TEXT.split())
    assert ", ".join(f"`{cause}`" for cause in Cause) in " ".join(TEXT.split())
