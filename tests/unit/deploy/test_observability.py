"""Dashboard and alerts ask for metrics that exist, and the guide explains each alert."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.gateway.desk import Desk
from rackwright.gateway.prometheus import expose
from rackwright.host.metrics import Metrics

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "observability"
NAME = re.compile(r"rackwright_[a-z0-9_]+")
GUIDE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def known() -> set[str]:
    """The metrics that services and gateway serve; those without samples have their metadata."""
    metrics = Metrics()
    expose(metrics.registry, Desk())
    found = set()
    for one in re.findall(r"^# TYPE (\S+) (\w+)", metrics.page().decode(), re.MULTILINE):
        name, kind = one
        found |= {name, f"{name}_bucket"} if kind == "histogram" else {name}
    documented = ROOT / "docs" / "api.md"
    return found | set(NAME.findall(documented.read_text(encoding="utf-8")))


def rules() -> list[dict[str, Any]]:
    """All alerts."""
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    """All panels of the dashboard."""
    made = json.loads((FOLDER / "grafana" / "rackwright.json").read_text())
    return list(made["panels"])


def test_metrics_exist() -> None:
    asked = [rule["expr"] for rule in rules()]
    asked += [target["expr"] for panel in panels() for target in panel["targets"]]
    named = {name for text in asked for name in NAME.findall(text)}
    there = known()
    missing = {name for name in named if name not in there and f"{name[:-7]}" not in there}
    assert missing == set()


def test_counters_that_alerts_watch_are_there_from_the_start() -> None:
    """`increase` does not see the first of a counter that appears with it."""
    asked = {name for r in rules() for name in re.findall(r"increase\((\w+)", r["expr"])}
    metrics = Metrics()
    expose(metrics.registry, Desk())
    page = metrics.page().decode()
    absent = {name for name in asked if not re.search(rf"^{name}\S* 0\.0$", page, re.MULTILINE)}
    assert asked
    assert absent == set()
    for service in ("placer", "spare-manager", "defragmenter", "health-monitor"):
        assert f'rackwright_voids_total{{service="{service}"}} 0.0' in page
    for stream in ("wish", "signal", "status"):
        assert f'rackwright_dead_letters_total{{stream="{stream}"}} 0.0' in page


def test_each_alert_is_explained() -> None:
    for rule in rules():
        for name in NAME.findall(rule["expr"]):
            assert f"`{name}`" in GUIDE
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
        assert anchor in anchors


@pytest.mark.parametrize("name", ["prometheus.yml", "collector.yaml", "grafana/datasource.yaml"])
def test_files_can_be_read(name: str) -> None:
    assert isinstance(yaml.safe_load((FOLDER / name).read_text()), dict)


def test_panels_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()]
    assert len(set(places)) == len(places)
