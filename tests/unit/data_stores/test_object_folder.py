"""What an object store answers, over real connections, and nothing of the server's own variables."""

from __future__ import annotations

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores.remote import RemoteFile, SourceChanged, StoreUnavailable, TransferInterrupted, open_remote
from riseml.data_stores.save_target import open_target
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import parse_data_url


def test_an_object_store_gets_no_variable_of_the_server(
    web_site: tuple[str, list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, asked = web_site
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SKIP_SIGNATURE"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    own = Store("lab", (), endpoint=f"http://{address}", access_key_id="OWN", secret_access_key="hush")
    (file,) = open_remote(parse_data_url("s3://b/x"), own).list_files()
    assert (file.path, file.size, file.key) == ("file", 6, "x/file")
    open_remote(parse_data_url("s3://b/x"), Store("open", (), endpoint=f"http://{address}")).list_files()
    signed, plain = asked
    assert "Credential=OWN/" in signed["authorization"]
    assert not {"x-amz-security-token"} & signed.keys()
    assert "authorization" not in plain


def test_an_error_of_an_object_store_is_one_sentence(web_site: tuple[str, list[dict[str, str]]]) -> None:
    address, _ = web_site
    store = Store("lab", (), endpoint=f"http://{address}", access_key_id="OWN", secret_access_key="hush")
    with pytest.raises(StoreUnavailable, match="the store answers 503"):
        open_remote(parse_data_url("s3://away/x"), store).list_files()
    broken = open_remote(parse_data_url("s3://cut/x"), store)
    with pytest.raises(TransferInterrupted, match="connection broke"):
        broken.read(RemoteFile("file", 6, '"e1"', "x/file"), 0, 6)
    with pytest.raises(StoreUnavailable, match=r"the store at http://127.0.0.1:1 does not answer"):
        open_remote(parse_data_url("s3://b/x"), Store("lab", (), endpoint="http://127.0.0.1:1")).list_files()


def test_an_object_whose_etag_the_list_does_not_have_is_read(web_site: tuple[str, list[dict[str, str]]]) -> None:
    remote = open_remote(parse_data_url("s3://unmarked/x"), Store("lab", (), endpoint=f"http://{web_site[0]}"))
    (file,) = remote.list_files()
    assert (file.etag, remote.read(file, 0, 6)) == ("", b"abcdef")


@pytest.mark.parametrize(
    ("url", "store", "wrong"),
    [
        ("gs://b/x", Store("lab", (), service_account="/nowhere.json"), "`service_account` names no JSON file"),
        ("az://c/x", Store("lab", (), account="paul", account_key="hush!"), "`account_key`"),
    ],
)
def test_an_entry_that_can_be_no_access_is_one_sentence(url: str, store: Store, wrong: str) -> None:
    for connect in (open_remote, open_target):
        with pytest.raises(EngineError, match=r"what stores\.yml has for the store lab cannot be used") as raised:
            connect(parse_data_url(url), store)
        error = raised.value
        assert (error.permanent, wrong in error.message, "hush" in str(error)) == (True, True, False)


def test_an_answer_of_another_place_is_refused(web_site: tuple[str, list[dict[str, str]]]) -> None:
    address, _ = web_site
    remote = open_remote(parse_data_url("s3://elsewhere/x"), Store("lab", (), endpoint=f"http://{address}"))
    with pytest.raises(SourceChanged):
        remote.read(RemoteFile("file", 6, '"other"', "x/file"), 0, 6)
