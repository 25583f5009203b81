"""The identity of a home: where a store was, no new one is made."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import StoreError
from riseml.base.settings import Settings
from riseml.server.identity import check_store_is_there, read_identity, record_server


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path, tmp_path / "output", tmp_path / "data")


def test_the_first_server_of_a_home_is_remembered_for_its_user_alone(settings: Settings) -> None:
    assert read_identity(settings.identity) is None
    record_server(settings, "5e17e4")
    record_server(settings, "other")
    assert read_identity(settings.identity) == "5e17e4"
    assert stat.S_IMODE(settings.identity.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [None, b""])
def test_a_store_that_is_gone_is_not_replaced(settings: Settings, content: bytes | None) -> None:
    check_store_is_there(settings)
    record_server(settings, "5e17e4")
    if content is not None:
        (settings.home / "riseml.db").write_bytes(content)
    with pytest.raises(StoreError, match="is gone or empty, and this home had one"):
        check_store_is_there(settings)
    check_store_is_there(replace(settings, store="postgresql://h/d"))
    (settings.home / "riseml.db").write_bytes(b"x")
    check_store_is_there(settings)
