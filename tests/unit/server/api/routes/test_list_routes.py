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


def test_curves_are_grouped_by_a_parameter_or_a_tag(served_application: Application, client: httpx.Client) -> None:
    """The two members of set 2 have reported; experiment 2 has three values, experiment 3 has two."""
    stores = served_application.services.stores
    for key, losses in (2, (1.0, 2.0, 9.0)), (3, (3.0, 4.0)):
        lines = [b'riseml.report {"step": %d, "loss": %f}\n' % pair for pair in enumerate(losses)]
        frames = [Frame("2026-08-31T07:23:47Z", 1, text) for text in lines]
        stores.logs.append_frames(JobKey(key, JobName("train"), 1), frames)

    def ask(**params: str) -> httpx.Response:
        return client.get("/v1/results/curves", params={"of": "2", "metric": "loss", **params})

    found = ask(by="tag").json()
    assert (found["x"], found["total"]) == ("step", 1)
    (group,) = found["groups"]
    assert group["ids"] == ["2.1", "2.2"]
    assert group["label"] == "no tag"
    assert (group["x"], group["n"], group["mean"]) == ([0, 1, 2], [2, 2, 1], [2, 3, 9])
    assert (group["low"], group["high"], group["error"]) == ([1, 2, 9], [3, 4, 9], [1, 1, None])
    by_rate = ask(by="lr").json()
    assert [group["ids"] for group in by_rate["groups"]] == [["2.1"], ["2.2"]]
    assert ask(by="parameters.lr").json()["groups"] == by_rate["groups"]
    assert [group["label"] for group in ask(by="point").json()["groups"]] == [
        group["label"] for group in by_rate["groups"]
    ]


def test_curves_that_cannot_be_grouped_are_refused(client: httpx.Client) -> None:
    for query, code, words in (
        ("of=2&metric=loss&by=units", 400, "no parameter 'units'"),
        ("of=2&metric=speed&by=lr", 404, "no metric 'speed' was reported"),
        ("of=2&metric=loss", 422, "by"),
        ("of=99&metric=loss&by=lr", 404, "99"),
        ("of=2&metric=loss&by=%00", 400, ""),
    ):
        answer = client.get(f"/v1/results/curves?{query}")
        assert answer.status_code == code, answer.text
        assert words in answer.text
