"""A Prometheus of this machine, for tests that let one look at a gateway."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

REQUIRE_ENV = "RACKWRIGHT_REQUIRE_PROMETHEUS"
HOW_TO_GET_IT = "apt-get install -y --no-install-recommends prometheus"
PATIENCE_S = 60.0


def prometheus_missing() -> str:
    """Why there is none; empty if there is one."""
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """One that runs at `url`."""

    url: str
    session: aiohttp.ClientSession

    async def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        async with self.session.get(f"{self.url}/api/v1/{path}{query}") as answer:
            text = await answer.text()
            assert answer.status == 200, text
            return json.loads(text)["data"]

    async def value(self, query: str) -> float | None:
        """What a query comes to, if it comes to one number."""
        found = (await self.get("query", query=query))["result"]
        return float(found[0]["value"][1]) if len(found) == 1 else None

    async def until(self, met: Callable[[Any], bool], path: str, **parameters: str) -> Any:
        """Ask until the answer is as wished: another program has no event of ours."""
        found: Any = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    found = await self.get(path, **parameters)
                    if met(found):
                        return found
                    await asyncio.sleep(0.05)
        except TimeoutError:
            targets = (await self.get("targets"))["activeTargets"]
            errors = [target["lastError"] for target in targets]
            raise AssertionError(f"{path} {parameters}: {found}; scraping: {errors}") from None


@asynccontextmanager
async def scraping(address: str, rules: Path, folder: Path) -> AsyncIterator[Prometheus]:
    """One that scrapes `address` (host:port) and evaluates `rules`, each once a second."""
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "cell", "static_configs": [{"targets": [address]}]}],
    }
    path = folder / "prometheus.yml"
    path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    port = _free_port()
    process = await asyncio.create_subprocess_exec(
        "prometheus",
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    )
    try:
        async with aiohttp.ClientSession() as session:
            made = Prometheus(url=f"http://127.0.0.1:{port}", session=session)
            await _answers(made, process)
            yield made
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _answers(made: Prometheus, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            assert process.returncode is None, "prometheus has ended"
            try:
                async with made.session.get(f"{made.url}/-/ready") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
