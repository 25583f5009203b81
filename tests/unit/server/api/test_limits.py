"""The largest body that a request may have."""

from __future__ import annotations

from collections.abc import Iterator

import httpx

from riseml.server.api.limits import MOST_BODY
from tests.unit.server.api.conftest import JSON, say


def test_a_body_without_end_is_not_read_to_its_end(client: httpx.Client) -> None:
    sent = 0

    def flood() -> Iterator[bytes]:
        nonlocal sent
        while sent < 100 * MOST_BODY:
            sent += 2**20
            yield b" " * 2**20

    try:
        response = client.post("/v1/experiments", content=flood(), headers=JSON)
    except httpx.TransportError:  # it may hang up on us before we have read its answer
        pass
    else:
        assert response.status_code == 413
        assert "8,388,608 bytes" in say(response)
    assert sent < 50 * MOST_BODY
    assert client.get("/v1/server").status_code == 200
