"""docs/api.md names every question, parameter, field, state and metric of the gateway."""

import re
from dataclasses import fields
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from rackwright.core.occupancy import GpuState, NodeUse
from rackwright.gateway import views
from rackwright.gateway.asked import QUESTIONS
from rackwright.gateway.context import Context
from rackwright.gateway.desk import Desk
from rackwright.gateway.prometheus import expose
from tests.tidy.source import ROOT
from tests.unit.gateway.storied import storied

TEXT = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
PARTS: dict[str, list[type[Any]]] = {
    "jobs": [views.JobsAnswer, views.JobRow],
    "job": [views.JobAnswer, views.SliceView, views.RankView, views.WoundView, views.Why],
    "racks": [views.RacksAnswer, views.RackView, views.NodeCell, views.SparesView],
    "node": [views.NodeAnswer, views.TenantView, views.FaultView],
    "events": [views.EventsAnswer, views.Line],
    "stats": [
        views.StatsAnswer,
        views.QueuedBy,
        views.SpareTotals,
        views.Fragmentation,
        views.Recoveries,
        views.Defrags,
    ],
    "services": [views.ServicesAnswer, views.ServiceView, views.CopyView],
    "policy": [views.PolicyAnswer, views.Knob],
    "defrag": [views.DefragAnswer],
}


def named(section: str) -> set[str]:
    """What stands in code type in a section, and in what comes before the first one."""
    head, *rest = re.split(r"^## ", TEXT, flags=re.MULTILINE)
    found = next(part for part in rest if part.startswith(f"{section}\n"))
    return set(re.findall(r"`([a-z0-9_]+)`", head + found))


@pytest.mark.parametrize("question", QUESTIONS)
def test_parameters_and_fields_are_described(question: str) -> None:
    wanted = {field.name for kind in PARTS[question] for field in fields(kind)}
    wanted |= {field.name for field in fields(QUESTIONS[question])}
    if question == "stats":  # as of a rack
        wanted -= {field.name for field in fields(views.SparesView)}
    assert sorted(wanted - named(question)) == []


def test_states_are_described() -> None:
    assert sorted(set(NodeUse) - named("racks")) == []
    assert sorted(set(GpuState) - named("stats")) == []


def test_metrics_are_described() -> None:
    class Open(Desk):
        def context(self) -> Context:
            return storied(1).context()

    registry = CollectorRegistry(auto_describe=True)
    expose(registry, Open())
    names = set()
    for family in registry.collect():
        total = "_total" if family.type == "counter" else ""
        names.add(f"{family.name}{total}")
    described = set(re.findall(r"`(rackwright_[a-z0-9_]+)`", TEXT))
    assert (names - described, described - names) == (set(), set())
