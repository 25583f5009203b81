"""`explain` of a set: its members and its search."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.explanations import explain
from tests.unit.cli.fake_server import NOW, FakeServer, make_experiment, make_search


def test_a_set_is_explained_by_its_members_and_its_search(riseml: Riseml, fake_server: FakeServer) -> None:
    states = {"4.1": "FINISHED", "4.2": "RUNNING", "4.3": "PENDING"}
    members = [make_experiment(name, state=state, started_at=None) for name, state in states.items()]
    members[1]["started_at"] = NOW
    search = make_search(next="makes trial 4 of 9 when 4.3 has got a place")
    fake_server.experiments["4"] = make_experiment(type="set", state="RUNNING", experiments=members, search=search)
    host = {"host": "gpu1", "obstacle": "drained", "text": "is drained", "jobs": []}
    waits = explain(id="4.3", phase="waits", state="PENDING", summary="no room now", hosts=[host])
    runs = explain(id="4.2", phase="placed", state="RUNNING", summary="it runs on gpu1")
    fake_server.answers["GET /experiments/4.3/explain"] = (200, waits)
    fake_server.answers["GET /experiments/4.2/explain"] = (200, runs)
    assert riseml("explain", "4").out.splitlines() == [
        "4 RUNNING: 3 experiments: 1 FINISHED, 1 RUNNING, 1 PENDING",
        "  4.3 PENDING: no room now",
        "  4.2 RUNNING: it runs on gpu1",
        "The search makes trial 4 of 9 when 4.3 has got a place.",
        "",
        "Why 4.3 waits:",
        "HOST  JOB  WHY NOT",
        "gpu1  all  is drained",
    ]
    shown = json.loads(riseml("explain", "4", "--json").out)
    assert (shown["counts"]["PENDING"], shown["members"][0]["id"]) == (1, "4.3")
