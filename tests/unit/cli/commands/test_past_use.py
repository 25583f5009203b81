"""`riseml monitor ID --since`: what jobs have used, in tables and as JSON."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment
from tests.unit.cli.histories import make_course, make_history


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


def test_missing_samples_and_wrong_options_are_reported(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FINISHED")
    fake_server.answers["GET /experiments/4/samples"] = (200, make_history())
    assert riseml("monitor", "4", "--since", "2h").out.startswith("Nothing is known of 4 since ")
    for words in (["--since", "2h"], ["4", "--since", "2h", "--gpu"]):
        result = riseml("monitor", *words)
        assert (result.code, "`riseml monitor 4 --since 2h`" in result.err) == (2, True)
    assert riseml("monitor", "4", "--since", "soon").code == 2
