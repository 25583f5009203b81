"""The route of the GPUs: their models, their load, and the jobs that have them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from riseml import wire
from riseml.server.api.waiting import wait_for_hosts
from riseml.server.services import Services
from riseml.server.usage.gpu_readings import find_holders, read_all_gpus, show_gpus


def add_gpu_routes(router: APIRouter, services: Services) -> None:
    """Add /gpus."""

    @router.get("/gpus")
    def read_gpus(of: Annotated[str, Query(max_length=300)] = "") -> wire.GpuList:
        wait_for_hosts(services)
        holders = find_holders(services.experiments.load_world().experiments)
        return show_gpus(read_all_gpus(services.hosts.pool), holders, of)
