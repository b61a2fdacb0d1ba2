"""How property tests search, and what happens to tests without the programs that they need.

No test may depend on how fast the machine is. Where RACKWRIGHT_REQUIRE_DOCKER is set, as in CI, a
missing engine is a failure; elsewhere the tests in containers are left out, loudly. So are those
with a Prometheus, by RACKWRIGHT_REQUIRE_PROMETHEUS.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import prometheus
from tests.support.engine import REQUIRE_ENV, engine_missing

E2E = Path(__file__).parent / "e2e"
INTEGRATION = Path(__file__).parent / "integration"
SCRAPED = INTEGRATION / "gateway" / "test_prometheus.py"
LEFT_OUT = pytest.StashKey[int]()
UNSCRAPED = pytest.StashKey[int]()
LACKS = pytest.StashKey[str]()

settings.register_profile(
    "rackwright",
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("rackwright")


@pytest.hookimpl(tryfirst=True)  # before the plugin that shares out looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a program that is not there, if that is allowed; share out the rest."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_beside(item.path)))
    _without_prometheus(config, items)
    containers = [item for item in items if E2E in item.path.parents]
    if not containers or not (why := engine_missing()):
        return
    if os.environ.get(REQUIRE_ENV):
        for item in containers:
            item.stash[LACKS] = f"{REQUIRE_ENV} is set, but {why}"
        return
    config.stash[LEFT_OUT] = len(containers)
    config.hook.pytest_deselected(items=containers)
    items[:] = [item for item in items if E2E not in item.path.parents]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that may not be left out fails without its program."""
    if lacks := item.stash.get(LACKS, ""):
        pytest.fail(lacks, pytrace=False)


def _beside(path: Path) -> str:
    """What goes to one and the same process when there are several: live cells one after the other,
    as each wants the machine for itself; of the rest a module at a time."""
    for alone in (INTEGRATION, E2E):
        if alone in path.parents:
            return alone.name
    return str(path)


def _without_prometheus(config: pytest.Config, items: list[pytest.Item]) -> None:
    needing = [item for item in items if item.path == SCRAPED]
    if not needing or not (why := prometheus.prometheus_missing()):
        return
    if os.environ.get(prometheus.REQUIRE_ENV):
        for item in needing:
            told = f"{prometheus.REQUIRE_ENV} is set, but {why}: {prometheus.HOW_TO_GET_IT}"
            item.stash[LACKS] = told
        return
    config.stash[UNSCRAPED] = len(needing)
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item.path != SCRAPED]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One of several processes tells the one that reports."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        told["left_out"] = [session.config.stash.get(key, 0) for key in (LEFT_OUT, UNSCRAPED)]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each of several processes has left out the same."""
    for key, count in zip((LEFT_OUT, UNSCRAPED), node.workeroutput["left_out"], strict=True):
        node.config.stash[key] = count


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say it where nobody can overlook it."""
    if count := config.stash.get(LEFT_OUT, 0):
        terminalreporter.section("TESTS IN CONTAINERS WERE LEFT OUT", sep="!", red=True, bold=True)
        terminalreporter.line(
            f"{count} tests in tests/e2e did not run: {engine_missing()}.\n"
            "Start a Docker engine with compose, then: make test-containers\n"
            "Without a registry make a base image first: sudo deploy/airgap/make-base"
        )
    if count := config.stash.get(UNSCRAPED, 0):
        title = "TESTS WITH A PROMETHEUS WERE LEFT OUT"
        terminalreporter.section(title, sep="!", red=True, bold=True)
        terminalreporter.line(
            f"{count} tests did not run: {prometheus.prometheus_missing()}. Get one:\n"
            f"{prometheus.HOW_TO_GET_IT}"
        )
