"""GET /metrics: the state of the server for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from riseml.server.services import Services
from riseml.server.usage.gpu_readings import GpuScrapes

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


def add_prometheus_routes(router: APIRouter, services: Services) -> None:
    """Add /metrics, which is outside of /v1, because Prometheus looks for it there."""

    gpus = GpuScrapes(services.hosts.pool)

    @router.get("/metrics", response_class=PlainTextResponse)
    def read_metrics() -> PlainTextResponse:
        from riseml.server.api.views.prometheus_families import make_exposition

        return PlainTextResponse(make_exposition(services, gpus), media_type=_FORMAT)
