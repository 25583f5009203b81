"""The pool and its queue, as the page asks for them."""

from __future__ import annotations

import httpx


def test_the_queue_says_why_each_waits(client: httpx.Client) -> None:
    found = client.get("/v1/pool/queue").json()
    assert found["length"] == len(found["waiting"])
    usage = client.get("/v1/pool/usage", params={"hours": 1}).json()
    assert (usage["step"], usage["left_out"]) == (60, 0)
    assert 60 <= len(usage["time"]) <= 61, "the first minute is a whole one"
    assert [len(one["cpu"]) for one in usage["hosts"]] == [len(usage["time"])] * len(usage["hosts"])
    assert client.get("/v1/pool/usage", params={"hours": 1000}).status_code == 422
