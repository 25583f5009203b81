"""Whether a server is the one that its address names: with real TLS on loopback."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from riseml.base.errors import Refused, RisemlError, Unreachable
from riseml.client.exchange import Address
from riseml.client.server_client import Client
from riseml.client.server_trust import is_trusted, make_tls_context, read_certificate
from riseml.client.stream_client import command_path, open_stream
from tests.support.authority import Authority, Pair
from tests.support.waiting import DEADLINE


class TlsServer:
    """Answers each connection with fixed bytes, and keeps what clients have sent."""

    def __init__(self, pair: Pair, answer: bytes, chain: tuple[str, ...] = ()) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        whole = Path(f"{pair.cert}.chain")
        whole.write_text("".join(Path(path).read_text() for path in (pair.cert, *chain)))
        self.context.load_cert_chain(whole, pair.key)
        self.answer = answer
        self.received: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @contextmanager
    def serve(self) -> Iterator[TlsServer]:
        self._thread.start()
        try:
            yield self
        finally:
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._thread.join(DEADLINE)

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            plain.settimeout(DEADLINE)
            try:
                with self.context.wrap_socket(plain, server_side=True) as connection:
                    self.received.append(connection.recv(1 << 16))
                    if self.received[-1]:
                        connection.sendall(self.answer)
            except OSError:
                plain.close()


REDIRECT = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


@pytest.fixture
def server(authority: Authority) -> Iterator[TlsServer]:
    """A server that shows its certificate with that of its authority."""
    with TlsServer(authority.sign("own", ("localhost",)), b"", (authority.ca,)).serve() as server:
        yield server


def pin(authority: Authority) -> str:
    return Path(authority.ca).read_text()


def ask(url: str, authority: str) -> RisemlError:
    """Return the error of a client that asks a server with a key."""
    with Client(Address(None, url, "the-key", authority)) as client, pytest.raises(RisemlError) as raised:
        client.get_server()
    return raised.value


async def _open(url: str, authority: str) -> None:
    async with open_stream(Address(None, url, "the-key", authority), command_path("1")):
        pass


def ask_stream(url: str, authority: str) -> RisemlError:
    """Return the error of a client that opens a stream with a key."""
    with pytest.raises(RisemlError) as raised:
        asyncio.run(_open(url, authority))
    return raised.value


def test_a_server_shows_its_authority_and_a_pin_trusts_it(server: TlsServer, authority: Authority) -> None:
    shown = read_certificate(server.url)
    assert ssl.PEM_cert_to_DER_cert(shown.authority) == ssl.PEM_cert_to_DER_cert(pin(authority))
    assert shown.names == ("localhost",)
    assert shown.fingerprint.startswith("SHA256:")
    assert is_trusted(server.url, make_tls_context(shown.authority))
    assert not is_trusted(server.url, make_tls_context())
    assert not is_trusted(server.url.replace("localhost", "127.0.0.1"), make_tls_context(shown.authority))


def test_a_certificate_without_its_authority_can_be_pinned_itself(authority: Authority) -> None:
    with TlsServer(authority.sign("own", ("localhost",)), b"").serve() as server:
        shown = read_certificate(server.url)
        assert is_trusted(server.url, make_tls_context(shown.authority))
        assert shown.fingerprint != read_fingerprint(pin(authority))


def read_fingerprint(pem: str) -> str:
    from riseml.base.certificates import fingerprint_of

    return fingerprint_of(ssl.PEM_cert_to_DER_cert(pem))


@pytest.mark.parametrize("asks", [ask, ask_stream])
@pytest.mark.parametrize("kind", ["foreign authority", "other name", "expired", "no pin"])
def test_a_server_that_is_not_the_pinned_one_gets_no_key(
    tmp_path: Path, authority: Authority, kind: str, asks: object
) -> None:
    assert callable(asks)
    life = timedelta(days=-1) if kind == "expired" else timedelta(days=1)
    signer = Authority(tmp_path, "between") if kind == "foreign authority" else authority
    pair = signer.sign("own", ("other.example.org" if kind == "other name" else "localhost",), life)
    with TlsServer(pair, b"HTTP/1.1 200 OK\r\n\r\n", (signer.ca,)).serve() as server:
        error = asks(server.url, "" if kind == "no pin" else pin(authority))
    assert isinstance(error, Refused)
    assert "nothing was sent" in error.message
    assert f"riseml login {server.url}" in (error.hint or "")
    assert not any(b"the-key" in data for data in server.received)
    if kind == "foreign authority":
        assert f"You trusted {read_fingerprint(pin(authority))}, and it shows {read_fingerprint(pin(signer))}" in str(
            error
        )
    elif kind != "no pin":
        assert "It comes from the authority that you trusted, and is valid for " in str(error)


@pytest.mark.parametrize("asks", [ask, ask_stream])
def test_no_redirect_is_followed(authority: Authority, asks: object) -> None:
    assert callable(asks)
    pair = authority.sign("own", ("localhost",))
    with TlsServer(pair, b"HTTP/1.1 200 OK\r\n\r\n").serve() as other:
        for target in (other.url, f"{other.url}/v1/server"):
            with TlsServer(pair, REDIRECT % target.encode()).serve() as server:
                assert isinstance(asks(server.url, pin(authority)), Unreachable)
                assert any(b"the-key" in data for data in server.received)
        assert other.received == []


def test_tls_older_than_1_2_is_refused(authority: Authority) -> None:
    server = TlsServer(authority.sign("own", ("localhost",)), b"")
    with pytest.warns(DeprecationWarning):
        server.context.minimum_version = ssl.TLSVersion.TLSv1
        server.context.maximum_version = ssl.TLSVersion.TLSv1_1
    server.context.set_ciphers("ALL:@SECLEVEL=0")
    with server.serve():
        assert isinstance(ask(server.url, pin(authority)), Unreachable)
        with pytest.raises(Unreachable, match="no server speaks TLS at"):
            read_certificate(server.url)


def test_a_damaged_pin_is_refused() -> None:
    for text in ("no certificate", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"):
        with pytest.raises(Refused, match="the pinned certificate is damaged"):
            make_tls_context(text)


def test_where_no_server_speaks_tls_the_user_learns_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = f"https://localhost:{listener.getsockname()[1]}"
    for url in (closed, "https://no-such-host.invalid"):
        with pytest.raises(Unreachable, match=f"no server speaks TLS at {url}"):
            read_certificate(url)
