"""Requests that no client sends by accident: the server refuses each in one sentence, with the right status."""

from __future__ import annotations

import json
from urllib.parse import quote

import httpx
import pytest

from tests.support.rig import single
from tests.unit.server.api.conftest import JSON, OTHER, SUBMISSION, say

TINY = "0001-01-01T00:00:00%2B14:00"


GETS = {
    "no number": ("experiments/x", 400, "'x' is not an experiment ID"),
    "a number beyond every store": ("experiments/99999999999999999999", 400, "is not an experiment ID"),
    "digits of another script": ("experiments/٣", 400, "is not an experiment ID"),
    "a very long name": (f"experiments/{'1' * 300}", 422, "at path.name"),
    "another user's": ("experiments/other.1", 404, "there is no experiment other.1"),
    "no such job": ("experiments/1.worker.7", 404, "has no job worker.7"),
    "a set has no TF_CONFIG": ("experiments/2/tfconfig", 400, "2 is a set"),
    "a set has no environment": ("experiments/2/environment", 400, "2 is a set"),
    "no cursor": ("experiments/1/logs?cursor=x", 400, "'x' is not a cursor"),
    "a cursor beyond every file": (f"experiments/1/logs?cursor=0.{2**62}", 400, "is not a cursor"),
    "a cursor beyond every store": (f"experiments/1/logs?cursor={2**40}.0", 400, "is not a cursor"),
    "a cursor of too many digits": (f"experiments/1/logs?cursor={'1' * 5000}.0", 400, "is not a cursor"),
    "a cursor of another stream": ("experiments/2/logs?cursor=0.0", 400, "is not a cursor"),
    **{
        f"the cursor {text}": (f"experiments/1/logs?cursor={quote(text)}", 400, "is not a cursor of this log")
        for text in (
            *(
                "0",
                "0.",
                ".0",
                "0.0.0.0",
                "0.0,",
                ",0.0",
                "0.0,0.0",
                "0.-1",
                "-1.0",
                "%2B0.0",
                "0_0.0",
                " 0.0",
                "1e3.0",
            ),
            *("\u0663.\u0660", "0.0.1", "0.1", "0.20", "0.999", "0.999.999", "0.999.990", "0x0.0", "None", "0.0\n"),
        )
    },
    "a moment beyond the calendar": (f"experiments/1/logs?since={TINY}", 400, "beyond the calendar"),
    "a tail below nothing": ("experiments/1/logs?tail=-1", 422, "at query.tail"),
    "a limit of everything": ("experiments?limit=99999999999", 422, "at query.limit"),
    "a NUL": ("experiments?project=%00", 400, "holds a NUL character"),
    "no such address": ("hosts", 404, "no such address"),
}


@pytest.mark.parametrize("name", GETS)
def test_an_odd_question(client: httpx.Client, name: str) -> None:
    path, status, words = GETS[name]
    response = client.get(f"/v1/{path}")
    assert (response.status_code, words in say(response)) == (status, True), response.text


POSTS: dict[str, tuple[dict[str, object], int, str]] = {
    "a NUL in a parameter": ({"parameters": [["lr", "0\0"]]}, 400, "NUL"),
    "a NUL in a variable": ({"environment": {"A\0": "x"}}, 400, "NUL"),
    "a NUL in the file": ({"config": "project: a\0"}, 400, "NUL"),
    "half a character": ({"file": "\ud800"}, 422, "at body.file"),
    "a key that is too long": ({"key": "k" * 65}, 422, "at body.key"),
    "a file that is too long": ({"config": "x" * (2**20 + 1)}, 422, "at body.config"),
    "too many variables": ({"environment": {str(one): "" for one in range(1001)}}, 422, "at body.environment"),
    "no digest": ({"snapshot": "../../etc/passwd"}, 400, "is not the digest"),
    "files that no client uploaded": ({"snapshot": OTHER}, 404, "are not on the server"),
    "problems in riseml.yml": ({"config": "project: [a"}, 422, ""),
    "more than any host has": ({"config": single("true", resources={"cpus": 9999, "mem": 64})}, 403, "can never run"),
    "a grid without end": ({"config": single("{{a}}", parameters={"a": {"range": [0, 1001]}})}, 422, ""),
}


@pytest.mark.parametrize("route", ["plans", "experiments"])
@pytest.mark.parametrize("name", POSTS)
def test_an_odd_submission(client: httpx.Client, route: str, name: str) -> None:
    fields, status, words = POSTS[name]
    response = client.post(f"/v1/{route}", content=json.dumps(SUBMISSION | fields), headers=JSON)
    if (route, status) == ("plans", 403):
        assert response.status_code == 200, "a plan only says that it would wait"
        return
    assert (response.status_code, words in say(response)) == (status, True), response.text


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 422), (b"{", 422), (b"[" * 200_000, 400), (b'"\xff"', 400), (b"null", 422), (b"1e999", 422)],
)
def test_a_body_that_is_not_a_submission(client: httpx.Client, body: bytes, status: int) -> None:
    response = client.post("/v1/experiments", content=body, headers=JSON)
    assert response.status_code == status, response.text
    say(response)


def test_what_is_not_allowed_says_what_is(client: httpx.Client) -> None:
    response = client.delete("/v1/experiments/1")
    assert (response.status_code, response.headers["allow"]) == (405, "GET")
    say(response)
