"""The routes of the server itself: its properties, its hosts, and its stop."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Response

from riseml import wire
from riseml.base.wire_revision import find_package
from riseml.server.api.views.pool_views import find_swarm_trouble, show_hosts
from riseml.server.api.views.record_views import show_time
from riseml.server.api.waiting import wait_for_hosts
from riseml.server.hosts.mode import LocalMode
from riseml.server.services import Services

log = logging.getLogger(__name__)


def add_server_routes(router: APIRouter, services: Services) -> None:
    """Add /server and /system."""

    @router.get("/server")
    def read_server() -> wire.ServerView:
        return show_server(services)

    @router.post("/server/stop")
    def stop_server() -> wire.ServerView:
        view = show_server(services)  # before the stop: a store that is silent must not delay the answer beyond it
        services.request_stop()
        return view

    @router.post("/server/key", status_code=204, response_class=Response)
    def rotate_key() -> Response:
        services.seals.rotate(services.experiments.reseal_variables)
        services.wake.set()
        log.info("the key of variables was replaced")
        return Response(status_code=204)

    @router.get("/system")
    def read_system() -> wire.SystemView:
        wait_for_hosts(services)
        return {"server": show_server(services), "hosts": show_hosts(services)}


def show_server(services: Services) -> wire.ServerView:
    """Return the properties of this server for clients."""
    info = services.info
    hosts = services.hosts
    counts = services.open.count()
    return {
        "version": info.version,
        "revision": info.revision,
        "package": find_package(),
        "id": info.id,
        "pid": info.pid,
        "started_at": show_time(info.started_at) or "",
        "home": str(services.settings.home),
        "executor": hosts.executor_name,
        "note": hosts.notice or find_swarm_trouble(services),
        "missing_engine": hosts.find_missing_engine(),
        "engine": services.settings.engine if isinstance(hosts.mode, LocalMode) else "",
        "output": str(services.settings.output),
        "data": str(services.settings.data),
        "problem": services.passes.problem or counts.problem,
        "active": counts.active,
        "closing": counts.closing,
        "searches": counts.searches,
    }
