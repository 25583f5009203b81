"""Answers of a program that is hostile or not a riseml server: each is an error of riseml, in bounded memory."""

from __future__ import annotations

import gzip
import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from riseml import __version__
from riseml.base import errors
from riseml.cli.log_follower import get_exit_code
from riseml.cli.output.pool_change_views import list_keys, list_members
from riseml.cli.output.results_view import make_columns
from riseml.cli.output.style import Style
from riseml.client.answer_check import WIRE_NAMES
from riseml.client.exchange import Address, Exchange
from riseml.client.refusals import make_error
from riseml.client.server_client import Client, LogQuery, RetryPolicy
from tests.unit.cli.fake_server import FakeServer, end, make_experiment

BODY: dict[str, Any] = {"kind": "QuotaSpent", "message": "m", "hint": None, "exit_code": 4}
PROBLEM = {"file": "f", "line": 1, "column": 2, "path": "a.b", "problem": "p", "hint": "h", "severity": "warning"}
DEEP = "[" * 200_000


class EndlessAnswer:
    """An answer whose body never ends. It gives the same bytes again and again."""

    def __init__(self, status: int, piece: int = 1 << 20) -> None:
        self.status_code, self.is_success = status, status == 200
        self.piece = piece  # bytes at once
        self.headers: dict[str, str] = {}

    def read(self) -> bytes:
        raise MemoryError

    def iter_bytes(self) -> Iterator[bytes]:
        yield from itertools.repeat(b" " * self.piece)

    iter_raw = iter_bytes

    def __enter__(self) -> EndlessAnswer:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("code", ["7", 0, -1, 256, 1 << 40, None, [], 4.0])
def test_an_exit_code_that_no_refusal_has_is_the_general_one(code: object) -> None:
    error = make_error(BODY | {"exit_code": code})
    assert (type(error), error.exit_code) == (errors.RisemlError, 1)


@pytest.mark.parametrize(
    "failure",
    [
        "no",
        [],
        None,
        {},
        BODY | {"message": {"a": 1}},
        BODY | {"message": None},
        BODY | {"hint": ["h"]},
        BODY | {"kind": {}},
        BODY | {"problems": "all"},
        BODY | {"problems": ["one"]},
        BODY | {"problems": [PROBLEM | {"line": "1"}]},
        BODY | {"problems": [PROBLEM | {"problem": {}}]},
        BODY | {"problems": [PROBLEM | {"severity": []}]},
    ],
    ids=str,
)
def test_a_refusal_with_fields_of_other_types_is_not_an_answer_of_riseml(
    client: Client, fake_server: FakeServer, failure: object
) -> None:
    fake_server.answers["GET /server"] = (400, {"error": failure})
    with pytest.raises(errors.Unreachable, match="not as a riseml server does"):
        client.get_server()


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("answer", [DEEP, '{"error":' * 100_000, "1" * 5000], ids=["lists", "objects", "digits"])
def test_json_that_python_cannot_read_is_not_an_answer_of_riseml(
    client: Client, fake_server: FakeServer, answer: str, status: int
) -> None:
    fake_server.answers["GET /server"] = (status, answer)
    with pytest.raises(errors.Unreachable, match="not as a riseml server does"):
        client.get_server()


@pytest.mark.parametrize(
    ("answer", "difference"),
    [
        ([], "it is a list"),
        ({}, "experiments is absent"),
        ({"experiments": [make_experiment(), make_experiment(jobs=3)]}, r"experiments\[1\].jobs is a number"),
    ],
    ids=str,
)
def test_an_answer_of_another_shape_is_named_with_the_server_and_the_field(
    client: Client, fake_server: FakeServer, answer: object, difference: str
) -> None:
    fake_server.answers["GET /experiments"] = (200, answer)
    with pytest.raises(errors.Unreachable, match=rf"server.sock answered 200, but .* does: {difference}$") as raised:
        client.list_experiments()
    assert raised.value.hint == "`riseml server stop`, then try again"
    with Client(Address(None, fake_server.url)) as remote, pytest.raises(errors.Unreachable) as raised:
        remote.list_experiments()
    assert raised.value.message.startswith(fake_server.url)
    assert f"whether the server has the version of this command ({__version__})" in str(raised.value.hint)


def test_a_server_of_another_version_may_lack_keys(client: Client, fake_server: FakeServer) -> None:
    fake_server.server["version"] = "1.9.0"
    del fake_server.server["searches"]
    fake_server.answers["GET /experiments"] = (200, {"experiments": [{"id": "4"}]})
    assert client.get_server()["version"] == "1.9.0"
    assert [sorted(experiment) for experiment in client.list_experiments()] == [["id"]]
    fake_server.server["version"] = __version__
    client.get_server()
    with pytest.raises(errors.Unreachable, match=r"experiments\[0\].user is absent"):
        client.list_experiments()


def test_texts_that_only_a_newer_server_knows_end_no_command() -> None:
    style = Style(colour=False)
    keys: Any = {"host": "a", "known_hosts": "", "keys": [{"kind": "X", "fingerprint": "f", "pinned": "later"}]}
    members: Any = [{"host": "a", "membership": "later"}]
    results: Any = {"objective": {"metric": "loss", "goal": "later"}, "parameters": [], "same": {}, "metrics": ["loss"]}
    assert "later" in "".join(list_keys(keys, style))
    assert "later" in "".join(list_members(members, style))
    assert get_exit_code(end("PAUSED")) == errors.ExperimentFailed.exit_code
    assert make_columns(results) is not None


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    exchange = Exchange(Address(Path("/x/server.sock")))
    monkeypatch.setattr(exchange, "open_response", lambda *_: EndlessAnswer(status))
    with pytest.raises(errors.Unreachable, match="not as a riseml server does"):
        exchange.request_answer("GET", "/server", WIRE_NAMES.ServerView)


@pytest.mark.parametrize(
    "line", [DEEP, "{no", "1" * 5000, '{"type": "end"}'], ids=["lists", "text", "digits", "no cursor"]
)
def test_an_invalid_log_is_not_an_answer_of_riseml(fake_server: FakeServer, line: str) -> None:
    fake_server.answers["GET /experiments/4/logs"] = (200, f"{line}\n")
    address, moments = Address(fake_server.home / "server.sock"), iter(range(0, 1000, 50))
    with (
        Client(address, RetryPolicy(60, lambda: next(moments), lambda _: None)) as client,
        pytest.raises(errors.Unreachable, match="not as a riseml server does"),
    ):
        list(client.stream_log("4", LogQuery(follow=False)))


def test_an_entry_of_a_log_without_end_is_not_read_to_its_end() -> None:
    exchange = Exchange(Address(Path("/x/server.sock")))
    with pytest.raises(errors.Unreachable, match="not as a riseml server does"):
        list(exchange.read_entries(EndlessAnswer(200, 1 << 24)))


def test_a_body_that_cannot_be_unpacked_is_a_broken_connection() -> None:
    body = gzip.compress(b"{}")[:8] + b"x" * 20
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"

    def answer(listening: socket.socket) -> None:
        door, _ = listening.accept()
        with closing(door):
            door.recv(1 << 16)
            door.sendall(head.encode() + body)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=[listening], daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with Client(Address(None, url)) as client, pytest.raises(errors.Unreachable, match="broke the connection"):
            client.get_server()
        thread.join()
