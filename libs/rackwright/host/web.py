"""The small HTTP server of every service: is it alive, may it decide, what does it count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from rackwright.host.metrics import Metrics
from rackwright.host.standing import Standing
from rackwright.wire.codec import to_json


@web.middleware
async def told_in_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Errors of HTTP itself look as ours do."""
    try:
        return await handler(request)
    except web.HTTPError as error:
        body = to_json({"status": error.status, "error": error.reason})
        allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        return web.Response(
            status=error.status, body=body, content_type="application/json", headers=allow
        )


class Web:
    """Serves /healthz, /readyz and /metrics, and what a service adds."""

    def __init__(
        self, standing: Standing, metrics: Metrics, routes: Sequence[web.AbstractRouteDef] = ()
    ) -> None:
        self._standing = standing
        self._metrics = metrics
        app = web.Application(client_max_size=65_536, middlewares=[told_in_json])
        app.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/readyz", self._ready),
                web.get("/metrics", self._page),
                *routes,
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 takes a free one. The address it listens on. Raises OSError."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        found: tuple[str, int] = self._runner.addresses[0][:2]
        structlog.get_logger().info("http.listening", host=found[0], port=found[1])
        return found

    async def aclose(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    def _report(self) -> dict[str, object]:
        standing = self._standing
        return {
            "service": standing.service,
            "copy": standing.ordinal,
            "cell": standing.cell,
            "ready": standing.serving,
            "revision": standing.revision,
            "stopped_at": standing.stopped_at,
            "why": standing.reason,
        }

    async def _health(self, _: web.Request) -> web.Response:
        return self._answer(200)

    async def _ready(self, _: web.Request) -> web.Response:
        return self._answer(200 if self._standing.serving else 503)

    def _answer(self, status: int) -> web.Response:
        body = to_json(self._report())
        return web.Response(status=status, body=body, content_type="application/json")

    async def _page(self, _: web.Request) -> web.Response:
        return web.Response(
            body=self._metrics.page(), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )
