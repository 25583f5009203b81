"""The listener of a server for a team, with real TLS on loopback."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from riseml.base.errors import Conflict, UsageError
from riseml.server import bounded_connection
from riseml.server.tls import tls_connections, tls_listener
from riseml.server.tls.tls_listener import TlsListener
from riseml.spec.server.types import CertificateFiles, ListenAddress, ServerConfig
from tests.support.authority import Authority
from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Door:
    """A listener of a team that answers every request, and what trusts its authority."""

    def __init__(self, home: Path) -> None:
        self.port = find_free_port()
        self.config = ServerConfig(ListenAddress("127.0.0.1", self.port), str(home / "audit.log"), ("localhost",))
        self.listener = TlsListener(self.config, home)
        self.context = ssl.create_default_context(cafile=str(home / "authority" / "authority.pem"))
        self.writers: list[StreamWriter] = []
        self.proven = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.proven:
            bounded_connection.mark_proven(scope)
        await PlainTextResponse("yes")(scope, receive, send)

    async def connect(self, *, secure: bool = True) -> tuple[StreamReader, StreamWriter]:
        options = {"ssl": self.context, "server_hostname": "localhost"} if secure else {}
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, **options)  # type: ignore[arg-type]
        self.writers.append(writer)
        return reader, writer

    async def ask(self) -> bytes:
        """Return the answer to a request over a new connection."""
        reader, writer = await self.connect()
        writer.write(REQUEST)
        return await reader.readuntil(b"yes")


def run(home: Path, test: Callable[[Door], Awaitable[None]]) -> None:
    async def call() -> None:
        async with asyncio.timeout(DEADLINE):
            door = Door(home)
            await door.listener.resume(door)
            try:
                await test(door)
            finally:
                for writer in door.writers:
                    writer.close()
                    with suppress(OSError):
                        await writer.wait_closed()
                await door.listener.suspend()
                door.listener.close()

    asyncio.run(call())


async def read_to_end(reader: StreamReader) -> bytes:
    """Return what comes before the server ends the connection."""
    with suppress(OSError):
        return await reader.read()
    return b""


def test_it_speaks_tls_1_2_and_1_3_and_nothing_older(tmp_path: Path) -> None:
    async def test(door: Door) -> None:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            door.context.minimum_version = door.context.maximum_version = version
            assert (await door.ask()).startswith(b"HTTP/1.1 200")
        door.context = ssl.create_default_context(cafile=str(tmp_path / "authority" / "authority.pem"))
        with pytest.warns(DeprecationWarning):
            door.context.minimum_version = ssl.TLSVersion.TLSv1
            door.context.maximum_version = ssl.TLSVersion.TLSv1_1
        door.context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await door.connect()

    run(tmp_path, test)


def test_a_request_without_tls_gets_nothing(tmp_path: Path) -> None:
    async def test(door: Door) -> None:
        reader, writer = await door.connect(secure=False)
        writer.write(REQUEST)
        assert b"HTTP" not in await read_to_end(reader)
        assert (await door.ask()).startswith(b"HTTP/1.1 200")

    run(tmp_path, test)


def test_a_renewed_certificate_is_shown_to_new_connections_and_open_ones_go_on(tmp_path: Path) -> None:
    async def test(door: Door) -> None:
        reader, writer = await door.connect()
        before = writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]
        shutil.rmtree(tmp_path / "authority" / "cert.pem", ignore_errors=True)
        (tmp_path / "authority" / "cert.pem").unlink()
        door.listener.renew()
        door.listener.refresh()
        _, other = await door.connect()
        assert other.get_extra_info("ssl_object").getpeercert()["serialNumber"] != before
        writer.write(REQUEST)
        assert (await reader.readuntil(b"yes")).startswith(b"HTTP/1.1 200")

    run(tmp_path, test)


def test_a_certificate_that_does_not_fit_its_key_leaves_the_former_in_use(tmp_path: Path) -> None:
    async def test(door: Door) -> None:
        foreign = Authority(tmp_path, "other").sign("other", ("localhost",))
        shutil.copyfile(foreign.cert, tmp_path / "authority" / "cert.pem")
        door.listener.refresh()
        assert (await door.ask()).startswith(b"HTTP/1.1 200")

    run(tmp_path, test)


@pytest.mark.parametrize("break_file", ["cert", "key", "both"])
def test_without_a_usable_certificate_and_key_nothing_listens(tmp_path: Path, break_file: str) -> None:
    pair = Authority(tmp_path, "own").sign("own", ("localhost",))
    if break_file == "cert":
        Path(pair.cert).write_text("no certificate\n")
    elif break_file == "key":
        Path(pair.key).unlink()
    else:
        Path(pair.key).write_bytes(Path(Authority(tmp_path, "else").sign("else").key).read_bytes())
    port = find_free_port()
    files = CertificateFiles(pair.cert, pair.key)
    config = ServerConfig(ListenAddress("127.0.0.1", port), str(tmp_path / "audit.log"), ("localhost",), files)
    with pytest.raises(UsageError, match=r"the certificate .* and the key .* cannot be (used|read)"):
        TlsListener(config, tmp_path)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), DEADLINE)


def test_an_address_in_use_and_a_foreign_one_are_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        for address, why in (
            (ListenAddress("127.0.0.1", other.getsockname()[1]), "is in use by another program"),
            (ListenAddress("192.0.2.1", find_free_port()), "cannot listen at 192.0.2.1"),
            (ListenAddress("no-such-host.invalid", 8443), "cannot listen at no-such-host.invalid"),
        ):
            with pytest.raises(Conflict, match=why):
                TlsListener(ServerConfig(address, str(tmp_path / "audit.log"), ("localhost",)), tmp_path)


def test_clients_without_a_handshake_end_and_the_oldest_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_listener, "MOST_OF_ADDRESS", 3)

    async def test(door: Door) -> None:
        silent = [await door.connect(secure=False) for _ in range(4)]
        assert await read_to_end(silent[0][0]) == b""
        assert (await door.ask()).startswith(b"HTTP/1.1 200")
        assert not silent[3][0].at_eof()
        monkeypatch.setattr(tls_listener, "HANDSHAKE_PATIENCE", 0.05)
        late, _ = await door.connect(secure=False)
        assert await read_to_end(late) == b""

    run(tmp_path, test)


def test_a_new_connection_gets_the_place_of_the_oldest_that_no_key_has_come_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_connections, "MOST_UNPROVEN", 2)

    async def test(door: Door) -> None:
        door.proven = True
        known, known_writer = await door.connect()
        known_writer.write(REQUEST)
        await known.readuntil(b"yes")
        door.proven = False
        first, second = [await door.connect() for _ in range(2)]
        third, _ = await door.connect()
        assert await read_to_end(first[0]) == b""
        assert not second[0].at_eof() and not third.at_eof()
        known_writer.write(REQUEST)
        assert (await known.readuntil(b"yes")).startswith(b"HTTP/1.1 200")
        monkeypatch.setattr(tls_connections, "MOST_CONNECTIONS", 3)
        monkeypatch.setattr(tls_connections, "MOST_UNPROVEN", 100)
        assert (await door.ask()).startswith(b"HTTP/1.1 200")
        assert await read_to_end(second[0]) == b""

    run(tmp_path, test)


def test_a_client_that_reads_nothing_of_an_answer_or_sends_half_a_head_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "HEAD_PATIENCE", 0.1)

    async def test(door: Door) -> None:
        reader, writer = await door.connect()
        writer.write(REQUEST[:-2])
        assert await read_to_end(reader) == b""

    run(tmp_path, test)
