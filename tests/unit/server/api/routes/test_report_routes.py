"""The routes of reports."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.support.callers import ME
from tests.unit.server.api.conftest import say

HALF = "the request holds half of a character (of a surrogate pair)"
CHART = "```chart\nruns: [1, 2.1, 2, 99, someone.4]\nmetric: loss\n```\n"


def save(client: httpx.Client, **request: object) -> httpx.Response:
    return post(client, "/v1/reports", {"name": "sweep", "text": f"# It works\n\n{CHART}", **request})


def post(client: httpx.Client, path: str, request: dict[str, object]) -> httpx.Response:
    """Send a request, also one with characters that UTF-8 does not have."""
    return client.post(path, content=json.dumps(request), headers={"Content-Type": "application/json"})


def test_a_report_is_saved_read_listed_and_removed(client: httpx.Client) -> None:
    view = save(client).json()
    assert {key: view[key] for key in ("id", "user", "title", "version", "can_change", "project")} == {
        "id": "sweep",
        "user": ME.user,
        "title": "It works",
        "version": 1,
        "can_change": True,
        "project": "",
    }
    text, chart = view["blocks"]
    assert (text["kind"], chart["kind"], chart["line"], chart["metric"]) == ("text", "chart", 3, "loss")
    assert (chart["runs"], chart["absent"]) == (["1", "2.1", "2"], 2), "what is not there is absent, with a number"
    assert client.get("/v1/reports/sweep").json() == view
    assert client.get(f"/v1/reports/{ME.user}.sweep").json() == view
    (listed,) = client.get("/v1/reports").json()["reports"]
    assert listed == {key: view[key] for key in listed}
    assert save(client, version=1, project="toaster").json()["project"] == "toaster"
    assert save(client, version=2).json()["project"] == "toaster", "it stays in its project"
    assert say(save(client)) == "there is a report sweep already"
    assert say(save(client, version=1)) == "the report sweep was changed meanwhile: it has version 3 now"
    removed = client.post("/v1/reports/remove", json={"name": "sweep"}).json()
    assert (removed["id"], removed["version"]) == ("sweep", 3)
    assert say(client.get("/v1/reports/sweep")) == "there is no report sweep"


@pytest.mark.parametrize(
    ("request_body", "status", "words"),
    [
        ({"text": ""}, 400, "the report is empty"),
        ({"text": "```chart\nruns: 1\n```"}, 400, "line 1: chart: `metric` is missing"),
        ({"text": "a\0"}, 400, "the request holds a NUL character"),
        ({"text": "a \ud800"}, 400, HALF),
        ({"project": "\ud800"}, 400, HALF),
        ({"name": "No Name"}, 400, "'No Name' is no name of a report"),
        ({"name": "paul.sweep"}, 404, "there is no report paul.sweep"),
        ({"name": "gone", "version": 4}, 404, "there is no report gone"),
        ({"text": "x" * 60_000}, 400, "the report has 60,000 characters; at most 50,000 are kept"),
    ],
)
def test_what_is_no_report_is_refused_in_words(
    client: httpx.Client, request_body: dict[str, object], status: int, words: str
) -> None:
    answer = save(client, **request_body)
    assert (answer.status_code, say(answer)) == (status, words)


def test_a_text_is_shown_before_it_is_saved(client: httpx.Client) -> None:
    def preview(text: str, **more: str) -> httpx.Response:
        return post(client, "/v1/reports/preview", {"text": text, **more})

    blocks = preview("a\n\n```chart\nruns: 1\n```\n").json()["blocks"]
    assert [(block["kind"], block["problem"]) for block in blocks] == [
        ("text", ""),
        ("problem", "chart: `metric` is missing"),
    ]
    assert preview(CHART, name="someone.sweep").json()["blocks"][0]["runs"] == [], "IDs are those of the author"
    assert preview("").json() == {"blocks": []}
    assert preview("x" * 60_000).status_code == 400
    assert preview("# \ud800").status_code == 400
    assert preview('```chart\nruns: 1\nmetric: "\\ud800"\n```').json()["blocks"][0]["kind"] == "problem"
