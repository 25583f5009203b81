"""What a page asks of a whole set: curves, and which parameters decide."""

from __future__ import annotations

import httpx

from riseml.server.api.routes.experiment_routes import thin_out
from riseml.store.metrics.metric_history import MetricHistory


def test_a_set_without_a_search_has_no_importance(client: httpx.Client) -> None:
    for name in ("1", "2", "2.1"):
        answer = client.get(f"/v1/experiments/{name}/importance")
        assert answer.status_code == 400
        assert "is not a set with a search" in answer.json()["error"]["message"]
    assert client.get("/v1/experiments/99/importance").status_code == 404


def test_a_set_without_reports_has_no_curves(client: httpx.Client) -> None:
    found = client.get("/v1/experiments/2/curves", params={"metric": "<b>loss</b>"}).json()
    assert found == {"metric": "<b>loss</b>", "total": 0, "curves": []}


def test_many_points_become_few_with_the_first_and_the_last() -> None:
    history = MetricHistory()
    for at in range(100):
        history.add(float(at), at, "2026-08-31T07:23:46Z")
    buckets = history.read_buckets()
    assert [one.mean for one in thin_out(buckets, 2)] == [0.0, 99.0]
    assert [one.mean for one in thin_out(buckets, 4)] == [0.0, 33.0, 66.0, 99.0]
    assert thin_out(buckets, 100) == list(buckets)


def test_the_queue_says_why_each_waits(client: httpx.Client) -> None:
    found = client.get("/v1/pool/queue").json()
    assert found["length"] == len(found["waiting"])
    usage = client.get("/v1/pool/usage", params={"hours": 1}).json()
    assert (usage["step"], usage["left_out"]) == (60, 0)
    assert 60 <= len(usage["time"]) <= 61, "the first minute is a whole one"
    assert [len(one["cpu"]) for one in usage["hosts"]] == [len(usage["time"])] * len(usage["hosts"])
    assert client.get("/v1/pool/usage", params={"hours": 1000}).status_code == 422
