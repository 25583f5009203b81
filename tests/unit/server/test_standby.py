"""A standby: when its turn comes on SQLite, and what it answers until then. `tests/chaos` has take-overs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from riseml.base.errors import StandbyServer, StoreError, Unreachable
from riseml.base.settings import Settings
from riseml.client.exchange import Address, Exchange, ServerAbsent
from riseml.client.server_client import Client
from riseml.server.home_lock import HomeLock
from riseml.server.process import _bind_socket
from riseml.server.standby.answers import StandbyApi, StandbyListener
from riseml.server.standby.turn import Awaited, Turn
from riseml.server.tls.host_names import find_own_address
from riseml.server.tls.tls_listener import TlsListener
from riseml.spec.server.types import ListenAddress, ServerConfig
from riseml.store.claim import ClaimTerms
from riseml.store.database import Database
from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE, wait_for

AWAITED = Awaited("process 7 on gpu1", "2026-11-28T19:00:00Z", "https://gpu1:8443")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path, tmp_path / "output", tmp_path / "data")


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    listener = _bind_socket(settings.standby_socket, settings.home)
    with (
        StandbyListener(StandbyApi(settings, lambda: AWAITED), listener),
        Client(Address(settings.standby_socket)) as client,
    ):
        yield client


def test_the_turn_of_a_standby_on_sqlite_comes_with_the_lock_of_the_home(settings: Settings) -> None:
    with HomeLock(settings.home, settings.lock) as own, closing(Turn(settings, own)) as turn:
        with HomeLock(settings.home, settings.lock) as other:
            other.take()
            assert not turn.has_come()
            assert own.describe() == ""
        assert turn.has_come()
        assert own.describe()
        with HomeLock(settings.home, settings.lock) as third:
            assert not third.try_take()
        own.give_back()
        assert not own.describe()


def test_a_standby_says_for_whom_it_waits(client: Client, settings: Settings) -> None:
    server = client.get_server()
    assert (server["state"], server["home"]) == ("standby", str(settings.home))
    assert (server["holder"], server["holder_since"]) == (AWAITED.holder, AWAITED.since)


def test_a_standby_refuses_everything_else_and_names_the_other_address(client: Client) -> None:
    with pytest.raises(StandbyServer, match="this server is a standby of process 7 on gpu1") as raised:
        client.list_experiments()
    assert raised.value.hint == "ask https://gpu1:8443; this one answers as soon as it has taken over"
    assert isinstance(raised.value, Unreachable)
    with pytest.raises(StandbyServer):
        client.stop_server()


def test_a_standby_refuses_a_websocket(client: Client, settings: Settings) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(settings.standby_socket))
        head = "GET /v1/experiments/1/exec HTTP/1.1\r\nHost: riseml\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        connection.sendall(f"{head}{key}".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 403")
    assert json.dumps(client.get_server())


def listen_on_loopback() -> tuple[socket.socket, str]:
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_client_of_several_addresses_asks_the_server_that_is_no_standby(settings: Settings) -> None:
    asked: list[str] = []

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(f"{scope['method']} {scope['path']}")
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    (waiting, standby_url), (serving, url), (absent, absent_url) = (listen_on_loopback() for _ in range(3))
    absent.close()
    standby = StandbyListener(StandbyApi(settings, lambda: AWAITED), waiting)
    exchange = Exchange(Address(None, absent_url, also=(standby_url, url)))
    with standby, StandbyListener(answer, serving), closing(exchange):
        for _ in range(2):
            exchange.send("POST", "/pool/check")
        assert asked == ["POST /v1/pool/check"] * 2
        alone = Exchange(Address(None, standby_url, also=(absent_url,)))
        with closing(alone), pytest.raises(ServerAbsent):
            alone.send("POST", "/pool/check")
        body = Exchange(Address(None, standby_url, also=(url,)))
        with closing(body), pytest.raises(StandbyServer):
            body.send("PUT", "/snapshots/1", content=iter([b"what a standby has read is gone"]))
    assert len(asked) == 2


@pytest.mark.parametrize("is_same", [True, False], ids=["the folder", "a copy"])
def test_a_home_whose_lock_is_free_while_another_server_serves_is_a_copy(
    settings: Settings, postgres_store: str, *, is_same: bool
) -> None:
    here = replace(settings, store=postgres_store, local=settings.home / "here")
    terms = ClaimTerms(shared=True, lock="the lock of the home, on another machine", patience=10.0)
    with ExitStack() as stack:
        stack.enter_context(closing(Database(postgres_store, "process 7 on gpu1", terms=terms)))
        if is_same:
            stack.enter_context(HomeLock(settings.home, settings.lock)).take()
        own = stack.enter_context(HomeLock(settings.home, settings.lock))
        turn = stack.enter_context(closing(Turn(here, own)))
        looks = 0

        def look() -> str:
            nonlocal looks
            looks += 1
            try:
                assert not turn.has_come()
            except StoreError as error:
                return error.message
            return "" if not is_same or looks < 14 else "it waits"

        told = wait_for("the standby knows", look, DEADLINE)
    copy = f"RISEML_HOME {settings.home} is not the folder of process 7 on gpu1"
    assert told.startswith("it waits" if is_same else copy)


def test_a_standby_of_a_team_tells_a_network_nothing_but_the_other_address(settings: Settings) -> None:
    port = find_free_port()
    tls = TlsListener(ServerConfig(ListenAddress("127.0.0.1", port), "audit.log", ("localhost",)), settings.home)
    pinned = (settings.home / "authority" / "authority.pem").read_text()
    socket_api, public = (StandbyApi(settings, lambda: AWAITED, is_public=is_public) for is_public in (False, True))
    listener = _bind_socket(settings.standby_socket, settings.home)
    with (
        StandbyListener(socket_api, listener, tls, public),
        Client(Address(None, f"https://localhost:{port}", authority=pinned)) as client,
    ):
        for ask in (client.get_server, client.list_experiments):
            with pytest.raises(StandbyServer) as raised:
                ask()
            assert raised.value.message == "this server is a standby of https://gpu1:8443"
    with socket.socket() as after:
        assert after.connect_ex(("127.0.0.1", port)) != 0, "it listens no more"


def test_the_address_of_a_server_has_a_name_of_its_machine() -> None:
    own = socket.gethostname().lower()
    listen = ListenAddress("0.0.0.0", 8443)
    assert find_own_address(ServerConfig(listen, "audit.log", ("other", own))) == f"https://{own}:8443"
    assert find_own_address(ServerConfig(listen, "audit.log", ("2001:db8::1", "other"))) == "https://[2001:db8::1]:8443"
