"""Lists of experiments."""

from __future__ import annotations

import httpx

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.server.app import Application


def test_lists_are_filtered_and_sorted(client: httpx.Client) -> None:
    def ask(**params: str | int) -> list[str]:
        answer = client.get("/v1/experiments", params={"all": "true", **params})
        assert answer.status_code == 200, answer.text
        return [one["id"] for one in answer.json()["experiments"]]

    assert ask(sort="number") == ["1", "2", "3"]
    assert ask(sort="-number", limit=1, offset=1) == ["2"]
    assert ask(text="lr=0.2") == ["2"]
    assert ask(state="CREATED") == ["3"]
    assert ask(state="CREATED", user="somebody") == []
    for query, code in ("sort=-ended&before=3", 400), ("sort=size", 422), ("state=DONE", 422):
        assert client.get(f"/v1/experiments?{query}").status_code == code
    assert client.get("/v1/experiments?text=%00").status_code == 400


def test_a_list_names_the_main_metric_of_each_experiment(served_application: Application, client: httpx.Client) -> None:
    """Experiment 1 has reported, and neither the members of set 2 nor experiment 3."""
    stores = served_application.services.stores
    lines = (b'riseml.report {"loss": 0.5, "accuracy": 0.25}\n', b'riseml.report {"loss": 0.125}\n')
    frames = [Frame("2026-08-31T07:23:47Z", 1, text) for text in lines]
    stores.logs.append_frames(JobKey(1, JobName("train"), 1), frames)

    def ask() -> list[object]:
        experiments = client.get("/v1/experiments?all=true").json()["experiments"]
        singles = [single for experiment in experiments for single in experiment["experiments"] or [experiment]]
        assert all(experiment["main_metric"] is None for experiment in experiments if experiment["type"] == "set")
        return [single["main_metric"] for single in singles]

    assert ask() == [None] * 4, "nothing is counted yet, and a list reads no log"
    stores.metrics.count_reports(1)
    assert ask() == [{"name": "loss", "last": 0.125}, None, None, None], "as counted"
    stores.metrics.note_closed(1)
    stores.metrics.count_reports(1)
    stores.metrics.save()
    assert ask() == [{"name": "loss", "last": 0.125}, None, None, None], "as saved"
    assert client.get("/v1/experiments/1").json()["main_metric"] is None, "`metrics` has all of them"
