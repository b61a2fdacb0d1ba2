"""Who answers is counted, and who does not is missed: after a while, and in every answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rackwright.bus.permissions import Role
from rackwright.cli.services import draw_services
from rackwright.gateway import asked
from rackwright.gateway.answers.services import services
from rackwright.gateway.context import Context
from rackwright.gateway.metrics import metrics
from rackwright.gateway.roster import GONE_S, Roster
from rackwright.gateway.views import ServicesAnswer
from rackwright.wire.codec import to_json
from tests.unit.cli.drawn import drawn
from tests.unit.gateway.storied import storied


class Around:
    """A roster, its clock, and copies that say something."""

    def __init__(self) -> None:
        self.mono = 100.0
        self.roster = Roster("main", lambda: self.mono)
        self.roster.unheard()

    def says(
        self, service: str, copy: int = 0, cell: str = "main", life: int = 1, **more: str
    ) -> None:
        """A copy has answered, in one of its lives."""
        said = {"cell": cell, "copy": str(copy), "ready": "true", "revision": "7", **more}
        name, life_of = f"rackwright-{service}", f"{service}-{copy}-{life}"
        answer = {"name": name, "id": life_of, "version": "1.0"}
        self.roster.note(to_json({**answer, "type": "ping", "metadata": said}))

    def all_say(self, *but: str) -> None:
        for role in Role:
            if role not in but:
                self.says(role)

    def later(self, seconds: float) -> None:
        self.mono += seconds

    def context(self) -> Context:
        """What answers are made from now."""
        return replace(storied(1).context(), present=self.roster.present())

    def answer(self) -> ServicesAnswer:
        return services(self.context(), asked.Services())


@pytest.fixture
def around() -> Around:
    return Around()


def test_a_service_is_missed_when_all_had_time_to_answer(around: Around) -> None:
    around.later(GONE_S)
    around.all_say("placer")
    assert around.context().made()["notices"] == ()
    around.later(0.1)
    assert around.context().made()["notices"] == (
        "no placer has answered for 5 s: no wish about jobs is answered, nothing is placed,"
        " started or ended",
    )
    around.says("placer")
    assert around.context().made()["notices"] == ()


def test_a_copy_that_was_started_anew_is_one_and_two_of_one_number_are_two(around: Around) -> None:
    around.says("placer")
    around.later(2.5)
    around.says("placer", life=2)
    assert numbers(around, "placer") == [0]
    around.says("placer", life=3)
    around.says("placer", copy=1)
    assert numbers(around, "placer") == [0, 0, 1]


def numbers(around: Around, service: str) -> list[int]:
    """The copies of a service that are counted."""
    (found,) = [one for one in around.roster.present() if one.service == service]
    return [copy.answer.copy for copy in found.copies]


@pytest.mark.parametrize("service", list(Role))
def test_what_it_means_is_said_of_each_service(around: Around, service: str) -> None:
    around.later(GONE_S + 1.0)
    around.all_say(service)
    (notice,) = around.context().made()["notices"]
    assert notice.startswith(f"no {service} has answered for 6 s")


def test_while_nobody_can_be_asked_nobody_is_missed(around: Around) -> None:
    around.later(60.0)
    around.roster.unheard()
    assert around.context().made()["notices"] == ()


def test_copies_that_may_not_decide_do_not_count(around: Around) -> None:
    around.all_say()
    around.later(GONE_S + 1.0)
    around.all_say("placer")
    around.says("placer", 0, ready="false", why="stopped at 9: unknown", stopped_at="9")
    around.says("placer", 1, ready="false")
    assert around.context().made()["notices"] == (
        "2 copies of the placer answer and none may decide: stopped at 9: unknown",
    )


@pytest.mark.parametrize("cell", ["main", "another"])
def test_copies_of_other_cells_and_what_is_no_answer_are_passed_over(
    around: Around, cell: str
) -> None:
    around.says("placer", cell=cell)
    around.says("stranger")
    around.says("placer", cell="main", copy=1, revision="?")
    around.roster.note(b"\xff")
    placer = next(one for one in around.answer().services if one.service == "placer")
    assert [copy.copy for copy in placer.copies] == ([0, 1] if cell == "main" else [1])


def test_a_copy_that_is_silent_is_forgotten(around: Around) -> None:
    around.says("placer", 0)
    around.later(GONE_S + 0.1)
    around.says("placer", 1)
    placer = next(one for one in around.answer().services if one.service == "placer")
    assert [(copy.copy, copy.ready, copy.seq) for copy in placer.copies] == [(1, True, 7)]


def test_the_picture(around: Around) -> None:
    around.later(GONE_S + 1.0)
    around.all_say("defragmenter", "dispatcher")
    around.says("placer", 1, ready="false", why="behind")
    around.says("dispatcher", ready="false", stopped_at="9", why="entry x is not known")
    assert [line.split() for line in drawn(draw_services(around.answer()))] == [
        ["service", "copy", "read", "to", "version", "state"],
        ["placer", "0", "7", "1.0", "ready"],
        ["placer", "1", "7", "1.0", "not", "ready:", "behind"],
        ["health-monitor", "0", "7", "1.0", "ready"],
        ["spare-manager", "0", "7", "1.0", "ready"],
        ["defragmenter", "-", "-", "-", "none", "for", "6", "s"],
        ["dispatcher", "0", "7", "1.0", "stopped", "at", "9:", "entry", "x", "is", "not", "known"],
        ["gateway", "0", "7", "1.0", "ready"],
    ]


def test_they_are_counted_for_prometheus(around: Around) -> None:
    around.says("placer", 0)
    around.says("placer", 1)
    around.says("gateway", ready="false")
    (family,) = [one for one in metrics(around.context()) if one.name == "rackwright_ready_copies"]
    found = {one.labels["service"]: one.value for one in family.values}
    assert found == dict.fromkeys(Role, 0.0) | {"placer": 2.0}


def test_what_a_gateway_says_without_the_bus_is_old() -> None:
    context = replace(storied(1).context(later_s=12.0), away=True)
    assert context.made()["notices"] == ("the gateway does not reach the bus: this is of 12 s ago",)
