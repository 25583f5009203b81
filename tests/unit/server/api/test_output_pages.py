"""The pages of the outputs that a clean-up may remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import httpx
import pytest

from riseml import wire
from riseml.cli.commands.output_cleaning import _find_outputs
from riseml.client.server_client import Client
from riseml.model import Experiment
from riseml.server.api.routes import file_routes
from tests.unit.server.api.conftest import NOW


class Asking:
    """Asks for pages, and counts them."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.pages: list[int] = []  # how many outputs each has

    def list_outputs(self, query: Mapping[str, str]) -> wire.OutputPage:
        found = cast(wire.OutputPage, self.client.get("/v1/outputs", params=dict(query)).json())
        self.pages.append(len(found["outputs"]))
        return found


def test_a_set_that_takes_longer_than_a_request_may_comes_in_several_pages(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(experiment: Experiment, *_: object) -> list[wire.OutputView]:
        return [file_routes._make_output_view(experiment)]

    monkeypatch.setattr(file_routes, "now", lambda: NOW)
    monkeypatch.setattr(file_routes, "_measure_output", measure)
    asking = Asking(client)
    whole = [one["experiment"] for one in _find_outputs(cast(Client, asking), {})]
    assert (whole, asking.pages) == (["2.1", "2.2", "1"], [3])
    monkeypatch.setattr(file_routes, "_PAGE_SECONDS", -1.0)
    asking = Asking(client)
    assert [one["experiment"] for one in _find_outputs(cast(Client, asking), {})] == whole
    assert max(asking.pages) == 1
