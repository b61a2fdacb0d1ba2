"""Nodes with real workers; whatever a test leaves running is killed."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from rackwright.agent import cgroups
from rackwright.agent.launch import Launcher
from tests.integration.agent.helpers import Node


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    """A server that forks supervisors."""
    launcher = Launcher()
    yield launcher
    launcher.close()


@pytest.fixture
async def make_node(tmp_path: Path, launcher: Launcher) -> AsyncIterator[Callable[..., Node]]:
    """Opens the node's directory, as an agent that starts; again: as one that starts again."""
    nodes: list[Node] = []

    def make(*, closing: bool = True, in_cgroups: bool = False, with_server: bool = True) -> Node:
        if nodes and closing:
            nodes[-1].store.close()
        root = cgroups.writable_root() if in_cgroups else None
        server = launcher if with_server else None
        nodes.append(Node(tmp_path / "node", cgroups=root, launcher=server))
        return nodes[-1]

    yield make
    if not nodes:
        return
    last = nodes[-1]
    for record in last.store.records.values():
        if not record.ended:
            last.store.stop(record.worker_id, 0)
    for record in tuple(last.store.records.values()):
        await last.end(record.worker_id)
    last.store.close()


@pytest.fixture
async def node(make_node: Callable[..., Node]) -> Node:
    """A node with a lease of a minute."""
    node = make_node()
    node.feed(60)
    return node
