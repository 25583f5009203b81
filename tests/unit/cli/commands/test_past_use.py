"""`riseml monitor ID --since`: what jobs have used, in tables and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from riseml.cli.output.history_view import list_past_use
from riseml.cli.output.style import Style
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment

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


def test_means_and_the_most_are_shown(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FINISHED")
    found = make_history(make_course("4.master", [0, 30, 60], cpu=[100.0, None, 200.0], mem_used=[2**20, 2**20, 2**21]))
    fake_server.answers["GET /experiments/4/samples"] = (200, found)
    head, row, _, note = riseml("monitor", "4", "--since", "2h").out.splitlines()
    assert head.split("  ")[0] == "ID"
    assert "GPU" not in head
    for cell in ("1.5/2 cores", "2 cores", "1.33/512 MiB", "2 MiB", "h1"):
        assert cell in row
    assert note == "2026-08-31T07:00:00Z to 2026-08-31T09:00:00Z: 3 values, each the mean of 30 s"
    assert json.loads(riseml("monitor", "4", "--since", "2h", "--json").out) == found


def test_bars_of_all_jobs_have_one_scale_of_time() -> None:
    early = make_course("4.worker.1", [0, 30], cpu=[200.0, 200.0])
    late = make_course("4.worker.2", [60, 90], cpu=[200.0, 200.0])
    found: Any = make_history(early, late)
    first, second = list_past_use(found, Style(), bars=True)[1:3]
    assert "██  " in first
    assert "  ██" in second
    assert list_past_use(make_history(), Style(), bars=True) == []  # type: ignore[arg-type]  # the shape of an answer


@pytest.mark.parametrize(
    "odd",
    [{"time": []}, {"time": [9, 3, 10**15]}, {"cpu": []}, {"time": [5, 5, 5]}],
    ids=["none", "far", "short", "same"],
)
def test_an_odd_answer_is_shown_without_an_error(odd: dict[str, Any]) -> None:
    found: Any = make_history(make_course("4.master", [0, 30, 60], cpu=[1.0, 2.0, 3.0]) | odd)
    list_past_use(found, Style(), bars=True)


def test_missing_samples_and_wrong_options_are_reported(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FINISHED")
    fake_server.answers["GET /experiments/4/samples"] = (200, make_history())
    assert riseml("monitor", "4", "--since", "2h").out.startswith("Nothing is known of 4 since ")
    for words in (["--since", "2h"], ["4", "--since", "2h", "--gpu"]):
        result = riseml("monitor", *words)
        assert (result.code, "`riseml monitor 4 --since 2h`" in result.err) == (2, True)
    assert riseml("monitor", "4", "--since", "soon").code == 2
