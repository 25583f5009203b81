"""What a store answers, over real connections: sentences, no redirects, and nothing of the server's own variables."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores.remote import (
    RemoteFile,
    SourceChanged,
    StoreUnavailable,
    TransferInterrupted,
    check_names,
    open_remote,
)
from riseml.data_stores.save_target import open_target
from riseml.data_stores.store_errors import Purpose, explain_status
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import parse_data_url
from tests.support.authority import Authority, Pair

LIST = (
    "<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated><Contents><Key>x/file</Key><Size>6</Size>"
    '<ETag>"e1"</ETag><LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>'
)
HEADERS = {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT", "ETag": '"e1"'}

WHOLE = {"Content-Range": "bytes 0-5/6"}
REFUSED = re.compile(r"refused/(\d+)/([A-Za-z]+)")


class Answers(BaseHTTPRequestHandler):
    """Answers by the first part of the path, and notes what it was asked."""

    asked: list[dict[str, str]]

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self.asked.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
        if "secret" in self.path:
            self.answer(206, b"SECRET", {**HEADERS, **WHOLE})
        elif self.path.startswith("/away"):
            self.answer(503, b"")
        elif self.path.startswith("/elsewhere"):
            self.answer(302, b"", {"Location": "/secret"})
        elif self.path.startswith("/cut"):
            status = 206 if "Range" in self.headers else 200
            self.answer(status, b"abc", {**HEADERS, **WHOLE}, claimed=6)
        elif refused := REFUSED.search(unquote(self.path)):
            error = f"<Error><Code>{refused[2]}</Code><Message>the store's own words</Message></Error>"
            self.answer(int(refused[1]), error.encode(), {"Content-Type": "application/xml"})
        elif self.path.startswith("/unmarked") and "list-type" in self.path:
            self.answer(200, LIST.replace('<ETag>"e1"</ETag>', "").encode(), {"Content-Type": "application/xml"})
        elif self.path.startswith("/unmarked"):
            self.answer(412 if "If-Match" in self.headers else 206, b"abcdef", {**HEADERS, **WHOLE})
        elif "list-type" in self.path:
            self.answer(200, LIST.encode(), {"Content-Type": "application/xml"})
        else:
            self.answer(404, b"")

    do_HEAD = do_GET

    def answer(self, code: int, body: bytes, headers: dict[str, str] | None = None, claimed: int = 0) -> None:
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(claimed or len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = True


@contextmanager
def serve(pair: Pair | None = None) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Run a web server, over TLS where it has a certificate; yield its address and what it was asked."""
    asked: list[dict[str, str]] = []
    handler: Any = type("Handler", (Answers,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if pair is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.cert, pair.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def site() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A web server, and what it was asked."""
    with serve() as found:
        yield found


def test_a_web_file_follows_no_redirect(site: tuple[str, list[dict[str, str]]]) -> None:
    address, asked = site
    with pytest.raises(EngineError, match="leads to another address") as raised:
        open_remote(parse_data_url(f"http://{address}/elsewhere"), Store("web", ())).list_files()
    assert raised.value.permanent
    assert [one["path"] for one in asked] == ["/elsewhere"]


def test_a_web_server_that_is_away_or_cuts_is_tried_again(site: tuple[str, list[dict[str, str]]]) -> None:
    address, _ = site
    with pytest.raises(StoreUnavailable, match="answers 503"):
        open_remote(parse_data_url(f"http://{address}/away"), Store("web", ())).list_files()
    remote = open_remote(parse_data_url(f"http://{address}/cut"), Store("web", ()))
    (file,) = remote.list_files()
    assert (file.path, file.size) == ("cut", 6)
    with pytest.raises(TransferInterrupted, match="connection broke"):
        remote.read(file, 0, 6)
    with pytest.raises(StoreUnavailable, match="does not answer"):
        open_remote(parse_data_url("http://127.0.0.1:1/x"), Store("web", ())).list_files()


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


def test_an_output_is_not_saved_where_the_certificate_is_not_trusted(tmp_path: Path) -> None:
    with serve(Authority(tmp_path, "own").sign("web", ("127.0.0.1",))) as (address, _):
        target = open_target(parse_data_url("s3://b/x"), Store("lab", (), endpoint=f"https://{address}"))
        with pytest.raises(EngineError, match="does not trust the server's certificate"):
            target.read("riseml-saved.json", 0, 100)
        with pytest.raises(EngineError, match="does not trust the server's certificate"):
            target.write("a", 1, iter([b"x"]))


def test_an_object_store_gets_no_variable_of_the_server(
    site: tuple[str, list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, asked = site
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


def test_an_error_of_an_object_store_is_one_sentence(site: tuple[str, list[dict[str, str]]]) -> None:
    address, _ = site
    store = Store("lab", (), endpoint=f"http://{address}", access_key_id="OWN", secret_access_key="hush")
    with pytest.raises(StoreUnavailable, match="the store answers 503"):
        open_remote(parse_data_url("s3://away/x"), store).list_files()
    broken = open_remote(parse_data_url("s3://cut/x"), store)
    with pytest.raises(TransferInterrupted, match="connection broke"):
        broken.read(RemoteFile("file", 6, '"e1"', "x/file"), 0, 6)
    with pytest.raises(StoreUnavailable, match=r"the store at http://127.0.0.1:1 does not answer"):
        open_remote(parse_data_url("s3://b/x"), Store("lab", (), endpoint="http://127.0.0.1:1")).list_files()


@pytest.mark.parametrize(
    ("answer", "sentence", "hint"),
    [
        ("404/NoSuchBucket", "there is no bucket b at http://", "check the name and the endpoint"),
        ("403/AccessDenied", "the store lab has no right to read it", "allow it at the store"),
        ("403/SignatureDoesNotMatch", "the keys of the store lab are wrong (SignatureDoesNotMatch)", "change the keys"),
        ("403/InvalidAccessKeyId", "the keys of the store lab are wrong (InvalidAccessKeyId)", "change the keys"),
        ("400/ExpiredToken", "the keys of the store lab are wrong (ExpiredToken)", "change the keys"),
        ("400/AuthorizationHeaderMalformed", "us-east-1 is not its region", "write the region of the bucket"),
        ("403/RequestTimeTooSkewed", "the clock of this machine and that of the store differ", "set the clock"),
    ],
)
def test_a_refusal_is_one_sentence_and_one_step(
    site: tuple[str, list[dict[str, str]]], answer: str, sentence: str, hint: str
) -> None:
    store = Store("lab", (), endpoint=f"http://{site[0]}", access_key_id="OWN", secret_access_key="hush")
    with pytest.raises(EngineError) as raised:
        open_remote(parse_data_url(f"s3://b/refused/{answer}"), store).list_files()
    error = raised.value
    assert (error.permanent, sentence in error.message, hint in str(error.hint)) == (True, True, True), error
    assert "own words" not in error.message


@pytest.mark.parametrize(
    ("url", "purpose", "message", "hint"),
    [
        ("https://host/x", Purpose.FETCH, "cannot be fetched: the server answers 401", "riseml sends web servers none"),
        ("https://host/x", Purpose.FETCH, "cannot be fetched: the store answers 410", "check the address"),
        ("s3://b/x", Purpose.SAVE, "cannot be saved: the store answers 410", "stores.yml"),
    ],
)
def test_a_status_alone_says_what_was_done_and_what_to_do(url: str, purpose: Purpose, message: str, hint: str) -> None:
    status = int(message.rsplit(" ", 1)[1])
    error = explain_status(parse_data_url(url), status, purpose)
    assert (error.permanent, error.message) == (True, f"{url} {message}")
    assert hint in str(error.hint)


def test_an_object_whose_etag_the_list_does_not_have_is_read(site: tuple[str, list[dict[str, str]]]) -> None:
    remote = open_remote(parse_data_url("s3://unmarked/x"), Store("lab", (), endpoint=f"http://{site[0]}"))
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


def test_an_answer_of_another_place_is_refused(site: tuple[str, list[dict[str, str]]]) -> None:
    address, _ = site
    remote = open_remote(parse_data_url("s3://elsewhere/x"), Store("lab", (), endpoint=f"http://{address}"))
    with pytest.raises(SourceChanged):
        remote.read(RemoteFile("file", 6, '"other"', "x/file"), 0, 6)


@pytest.mark.parametrize("path", ["../x", "a//b", "/etc/x", "a/./b", "x" * 256, "a\0b"])
def test_names_that_no_file_can_have_are_refused(path: str) -> None:
    with pytest.raises(EngineError, match="has an object of the name"):
        check_names(parse_data_url("s3://b"), [RemoteFile(path, 1, "e")])


def test_an_object_and_a_folder_of_one_name_are_refused() -> None:
    with pytest.raises(EngineError, match="name of its folder"):
        check_names(parse_data_url("s3://b"), [RemoteFile("a", 1, "e"), RemoteFile("a/b", 1, "e")])
