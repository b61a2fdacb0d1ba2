"""How property tests search, and what happens to tests without what they need of the machine.

No test may depend on how fast the machine is. What lacks its needs (`support/needs.py`) is left
out, loudly; where the environment says that it may not be, as in CI, it fails.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.needs import NEEDS
from tests.support.sharing import Groups

LEFT_OUT = pytest.StashKey[list[int]]()
LACKS = pytest.StashKey[str]()

settings.register_profile(
    "rackwright",
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("rackwright")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups:
    """Several processes share the tests out by group."""
    return Groups(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what lacks its needs, if that is allowed."""
    config.stash[LEFT_OUT] = [0] * len(NEEDS)
    for turn, need in enumerate(NEEDS):
        needing = [item for item in items if need.concerns(item.path)]
        if not needing or not (why := need.missing()):
            continue
        if os.environ.get(need.require):
            for item in needing:
                item.stash[LACKS] = f"{need.require} is set, but {why}. {need.how}"
            continue
        config.stash[LEFT_OUT][turn] = len(needing)
        config.hook.pytest_deselected(items=needing)
        items[:] = [item for item in items if not need.concerns(item.path)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that may not be left out fails without what it needs."""
    if lacks := item.stash.get(LACKS, ""):
        pytest.fail(lacks, pytrace=False)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One of several processes tells the one that reports."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        told["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each of several processes has left out the same; one that has crashed tells nothing."""
    told = getattr(node, "workeroutput", None)
    if told is not None:
        node.config.stash[LEFT_OUT] = told["left_out"]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say it where nobody can overlook it."""
    counts = config.stash[LEFT_OUT] if LEFT_OUT in config.stash else [0] * len(NEEDS)
    for need, count in zip(NEEDS, counts, strict=True):
        if count:
            title = f"TESTS WITH {need.what.upper()} WERE LEFT OUT"
            terminalreporter.section(title, sep="!", red=True, bold=True)
            terminalreporter.line(f"{count} tests did not run: {need.missing()}.\n{need.how}")
