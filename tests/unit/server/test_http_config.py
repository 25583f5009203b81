"""How the server speaks HTTP: the size of a head, and what it says of itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from riseml.server.http_config import configure_http
from tests.support.waiting import DEADLINE
from tests.support.without_tls import NO_AUTHORITIES


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        server = uvicorn.Server(configure_http(PlainTextResponse("hello")))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=url, timeout=DEADLINE, verify=NO_AUTHORITIES) as client:
            yield client
        server.should_exit = True
        thread.join()


def test_a_head_may_have_the_cursor_of_a_thousand_logs(client: httpx.Client) -> None:
    assert client.get("/", headers={"X-Cursor": "0" * 41_000}).status_code == 200


def test_a_head_without_end_is_refused(client: httpx.Client) -> None:
    address = (client.base_url.host, client.base_url.port or 0)
    with socket.create_connection(address, timeout=DEADLINE) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: riseml\r\nX-Cursor: " + b"0" * 66_000)
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")


def test_an_answer_does_not_name_the_software(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.text == "hello"
    assert "server" not in answer.headers
