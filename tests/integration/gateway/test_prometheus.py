"""A Prometheus scrapes a living gateway and evaluates our alerts."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rackwright.wire.entries.cell import AutomationPaused, LedgerCreated
from rackwright.wire.entries.node import RepairRequested
from rackwright.wire.ids import NodeId, Owner
from rackwright.wire.nodes import RepairAction
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.versions import FOLD_VERSION
from tests.integration.bus.harness import Harness
from tests.integration.gateway.conftest import gateway
from tests.integration.gateway.written import Written
from tests.support.fleets import LEDGER, rack_spec
from tests.support.prometheus import scraping
from tests.tidy.source import ROOT

RULES = ROOT / "deploy" / "observability" / "alerts.yml"
FAR = 4_000_000_000.0


def test_the_rules_are_good_to_its_own_tool() -> None:
    found = subprocess.run(
        ["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def troubled() -> Written:
    """A cell with work, a repair that nobody answers, an open breaker, and read only."""
    made = Written(sound=False)
    policy = Policy(repair_overdue_s=0.001, breaker_min=1)
    made.add(LedgerCreated(ledger=LEDGER, fold_version=FOLD_VERSION, policy=policy))
    made.define(rack_spec("r0", 4))
    made.sit("a", "r0", [0, 1])
    made.unfit("r0-n03")
    node = made.fleet.node(NodeId("r0-n03"))
    why = Reason(code="test")
    made.add(RepairRequested(node=node.name, of=node.last, action=RepairAction.REBOOT, reason=why))
    made.add(AutomationPaused(automation=Automation.ALL, until=FAR, by=Owner("ann")))
    return made


def by_name(alerts: dict[str, Any]) -> set[str]:
    return {alert["labels"]["alertname"] for alert in alerts["alerts"]}


async def names(address: str) -> set[str]:
    """Names of all samples of the cell that the gateway serves."""
    async with aiohttp.ClientSession() as session, session.get(f"{address}/metrics") as answer:
        text = await answer.text()
    return {
        sample.name
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.name.startswith("rackwright_")
    }


@pytest.mark.integration
@pytest.mark.parametrize("harness", ["jetstream"], indirect=True)
async def test_it_scrapes_all_metrics_and_evaluates_every_rule(
    harness: Harness, tmp_path: Path
) -> None:
    bus = await harness.bus()
    await troubled().write(bus)
    wanted = {"RackwrightRepairOverdue", "RackwrightBreakerOpen", "RackwrightReadOnly"}
    async with gateway(bus) as (_, address):
        where = address.removeprefix("http://")
        async with scraping(where, RULES, tmp_path) as found:
            alerts = await found.until(lambda now: wanted <= by_name(now), "alerts")
            assert "RackwrightMustBeZero" not in by_name(alerts)
            rules = await found.get("rules")
            told = [rule for group in rules["groups"] for rule in group["rules"]]
            assert {rule["health"] for rule in told} == {"ok"}
            assert await found.value("rackwright_installed_gpus") == 16.0
            assert await found.value("sum(rackwright_gpus)") == 16.0
            assert await found.value('rackwright_gpus{state="useful"}') == 8.0
            assert await found.value('rackwright_repair_overdue{action="reboot"}') == 1.0
            stored = set(await found.get("label/__name__/values"))
            assert await names(address) - stored == set()
