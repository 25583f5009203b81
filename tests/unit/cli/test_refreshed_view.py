"""A view that is drawn again until the experiment ends, also when the server is lost for a while."""

from __future__ import annotations

import pytest

from tests.support.screen import read_screen
from tests.unit.analysis.live_samples import SAMPLE
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import LOST, FakeServer, make_experiment


def test_status_watch_ends_with_the_experiment(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FINISHED", closed=True)
    shown = read_screen(riseml("status", "4", "-w", live=True).out, 80, 24)
    assert shown[:2] == ["ID: 4", "Type: Experiment"]


@pytest.mark.parametrize("words", ["status 4 -w", "status 4 -w --json"])
def test_status_watch_survives_a_lost_server(riseml: Riseml, fake_server: FakeServer, words: str) -> None:
    fake_server.experiments["4"] = make_experiment(state="FINISHED", closed=True)
    fake_server.lost = ["GET /experiments/4"]
    result = riseml(*words.split())
    assert (result.code, result.err) == (0, LOST)
    assert "FINISHED" in result.out


def test_status_without_watch_fails_when_the_server_is_lost(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.lost = ["GET /experiments/4"]
    assert riseml("status", "4").code == 5


def test_monitor_ends_with_the_experiment(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FINISHED")
    fake_server.answers["GET /experiments/4/samples"] = (200, {"samples": [SAMPLE]})
    fake_server.lost = ["GET /experiments/4/samples"]
    result = riseml("monitor", "4")
    assert (result.code, result.err) == (0, LOST)
