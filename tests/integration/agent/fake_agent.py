"""An agent that starts one worker, says so and waits to be killed: DIRECTORY SECONDS SCRIPT."""

import asyncio
import sys
from pathlib import Path

from tests.integration.agent.helpers import Node


async def main(directory: str, seconds: str, script: str) -> None:
    """Start the worker under one lease that is never fed again."""
    node = Node(Path(directory))
    until = node.feed(float(seconds))
    record = await node.run("j/0/1", script)
    print(record.pid, record.supervisor, until, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
