"""A client that got no answer submits again with the same key."""

from __future__ import annotations

import httpx

from tests.unit.server.api.conftest import SUBMISSION


def test_the_repeat_of_an_accepted_submission_is_not_refused(client: httpx.Client) -> None:
    first = client.post("/v1/experiments", json=SUBMISSION | {"key": "k"})
    gone = SUBMISSION | {"key": "k", "snapshot": "0" * 64}  # its files were removed meanwhile
    again = client.post("/v1/experiments", json=gone)
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])
    assert client.post("/v1/experiments", json=gone | {"key": "other"}).status_code == 404
    assert client.post("/v1/experiments", json=SUBMISSION | {"key": "\0"}).status_code == 400


def test_the_repeat_of_an_accepted_tensorboard_is_not_refused(client: httpx.Client) -> None:
    first = client.post("/v1/experiments", json=SUBMISSION | {"key": "board"})  # no TensorBoard can start here
    order = {"experiments": ["99"], "key": "board"}  # its experiment was removed meanwhile
    again = client.post("/v1/tensorboards", json=order)
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])
