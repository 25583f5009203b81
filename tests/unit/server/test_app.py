"""The parts of a server, put together over a home."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx
import pytest

from riseml.base.errors import StoreError
from riseml.server.app import make_application
from tests.support.callers import call_as
from tests.unit.server.stored_experiments import open_application


def test_an_application_answers_with_the_id_of_its_store(tmp_path: Path) -> None:
    with open_application(tmp_path) as application:
        server = application.services.info.id

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(call_as(application.api))
            async with httpx.AsyncClient(transport=transport, base_url="http://riseml") as client:
                return await client.get("/v1/server")

        assert asyncio.run(ask()).json()["id"] == server
    with open_application(tmp_path) as again:
        assert again.services.info.id == server, "the store has it"


def test_a_home_whose_store_is_gone_gets_no_new_one(tmp_path: Path) -> None:
    with open_application(tmp_path) as application:
        settings = application.services.settings
    (tmp_path / "riseml.db").unlink()
    with pytest.raises(StoreError, match="is gone or empty, and this home had one"):
        make_application(settings, threading.Event())
