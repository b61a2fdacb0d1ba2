"""Programs that the pages show do what the pages say."""

import asyncio
import json
import re
import sys
import textwrap
from pathlib import Path

import pytest

from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.jetstream import connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.permissions import User, user
from rackwright.bus.streams import GIB
from rackwright.wire.codec import decode_wish
from rackwright.wire.wishes import Submit

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SERVER = "nats://127.0.0.1:4222"


def shown(page: str) -> str:
    """The first Python program of a page."""
    found = re.search(
        r"^( *)```python\n(.*?)^\1```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return textwrap.dedent(found[2])


async def run(program: str, folder: Path) -> str:
    """What a program prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=folder, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()


async def test_a_cell_is_made_and_a_job_submitted_as_the_pages_show(tmp_path: Path) -> None:
    users = (
        User(name="admin", password="one"),
        User(name="ann", password="two", permissions=user("main", "ann")),
    )
    (tmp_path / "admin.password").write_text("one\n")
    (tmp_path / "cell" / "credentials").mkdir(parents=True)
    (tmp_path / "cell" / "credentials" / "ann").write_text("two")
    options = EmbeddedOptions(
        data_dir=tmp_path / "nats", users=users, max_memory=6 * GIB, max_file=80 * GIB
    )
    async with EmbeddedServer(options) as server:
        make = shown("docs/operations.md").replace(SERVER, server.url)
        assert await run(make, tmp_path) == "created\n"
        assert await run(make, tmp_path) == "was there\n"
        said = await run(shown("README.md").replace(SERVER, server.url), tmp_path)
        assert said == "wish 1\n"
        admin = ConnectOptions(
            servers=(server.url,), identity="admin", user="admin", password="one"
        )
        bus = await connect(admin, "main")
        async with bus.wishes.follow(1) as feed:
            stored = await anext(feed)
        await bus.close()
    assert stored.subject == "rackwright.main.wish.ann.submit"
    wish, _ = decode_wish("wish.submit", stored.data)
    assert isinstance(wish, Submit)
    assert (wish.job, wish.spec.nodes, wish.spec.run) == ("hello-1", 2, "hostname")
    shell = re.search(r"^  '(\{.*\})'$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert shell is not None
    assert json.loads(shell[1]) == json.loads(stored.data)
