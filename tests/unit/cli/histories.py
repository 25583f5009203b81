"""What jobs have used, as the server answers it."""

from __future__ import annotations

from typing import Any

NAMES = ("cpu", "mem_used", "mem_total", "gpu", "gpu_mem_used", "gpu_mem_total")
RATES = ("net_in", "net_out", "disk_read", "disk_write")


def make_history(*jobs: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of the server."""
    return {"since": "2026-08-31T07:00:00Z", "until": "2026-08-31T09:00:00Z", "step": 30, "jobs": list(jobs)}


def make_course(job: str, times: list[int], **amounts: list[float | None]) -> dict[str, Any]:
    """Return one job; what is not named is unknown."""
    head = {"id": job, "project": "toaster", "state": "FINISHED", "host": "h1", "cpus": 2.0, "mem_mib": 512, "gpus": 0}
    unknown: dict[str, Any] = {name: [None] * len(times) for name in (*NAMES, *RATES)}
    return {**head, "time": times, "attempt": [1] * len(times), **unknown, **amounts}
