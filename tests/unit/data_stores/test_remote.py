"""Remote files of any kind: names that files can have, and certificates that this machine trusts."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores.remote import RemoteFile, check_names, open_remote
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import parse_data_url
from tests.support.authority import Authority
from tests.unit.data_stores.store_answers import serve


@pytest.mark.parametrize("kind", ["https", "s3"])
def test_a_certificate_that_this_machine_does_not_trust_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    authority = Authority(tmp_path, "own")
    with serve(authority.sign("web", ("127.0.0.1",))) as (address, _):
        store = Store("lab", (), endpoint=f"https://{address}")
        url = parse_data_url(f"https://{address}/cut" if kind == "https" else "s3://b/x")
        with pytest.raises(EngineError, match="does not trust the server's certificate") as raised:
            open_remote(url, store).list_files()
        assert (raised.value.permanent, "SSL_CERT_FILE" in str(raised.value.hint)) == (True, True)
        monkeypatch.setenv("SSL_CERT_FILE", authority.ca)
        (file,) = open_remote(url, store).list_files()
        assert (file.path, file.size) == ("cut" if kind == "https" else "file", 6)


@pytest.mark.parametrize("path", ["../x", "a//b", "/etc/x", "a/./b", "x" * 256, "a\0b"])
def test_names_that_no_file_can_have_are_refused(path: str) -> None:
    with pytest.raises(EngineError, match="has an object of the name"):
        check_names(parse_data_url("s3://b"), [RemoteFile(path, 1, "e")])


def test_an_object_and_a_folder_of_one_name_are_refused() -> None:
    with pytest.raises(EngineError, match="name of its folder"):
        check_names(parse_data_url("s3://b"), [RemoteFile("a", 1, "e"), RemoteFile("a/b", 1, "e")])
