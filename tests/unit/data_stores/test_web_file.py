"""One file of a web server: no redirect, and another try where the server is away or cuts."""

from __future__ import annotations

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores.remote import StoreUnavailable, TransferInterrupted, open_remote
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import parse_data_url


def test_a_web_file_follows_no_redirect(web_site: tuple[str, list[dict[str, str]]]) -> None:
    address, asked = web_site
    with pytest.raises(EngineError, match="leads to another address") as raised:
        open_remote(parse_data_url(f"http://{address}/elsewhere"), Store("web", ())).list_files()
    assert raised.value.permanent
    assert [one["path"] for one in asked] == ["/elsewhere"]


def test_a_web_server_that_is_away_or_cuts_is_tried_again(web_site: tuple[str, list[dict[str, str]]]) -> None:
    address, _ = web_site
    with pytest.raises(StoreUnavailable, match="answers 503"):
        open_remote(parse_data_url(f"http://{address}/away"), Store("web", ())).list_files()
    remote = open_remote(parse_data_url(f"http://{address}/cut"), Store("web", ()))
    (file,) = remote.list_files()
    assert (file.path, file.size) == ("cut", 6)
    with pytest.raises(TransferInterrupted, match="connection broke"):
        remote.read(file, 0, 6)
    with pytest.raises(StoreUnavailable, match="does not answer"):
        open_remote(parse_data_url("http://127.0.0.1:1/x"), Store("web", ())).list_files()
