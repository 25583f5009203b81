"""IDs that a shell completes: they come at once or not at all, and are safe for the shell."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from riseml.cli import completion_names
from riseml.cli.completion_names import find_names
from tests.support.waiting import DEADLINE

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


@contextmanager
def serve_once(home: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """A socket in the home of which one connection gets an answer."""
    home.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(home / "server.sock"))
        door.listen()

        def run() -> None:
            with door.accept()[0] as connection:
                answer(connection)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield
        thread.join(DEADLINE)


def send(body: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(body)

    return answer


@pytest.fixture(autouse=True)
def wait_for_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that answers may be late on a busy machine."""
    monkeypatch.setattr(completion_names, "_PATIENCE", float(DEADLINE))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    found = tmp_path / "h"
    found.mkdir(mode=0o700)
    return found


def ask(home: Path, prefix: str = "") -> list[str]:
    return find_names(prefix, {"RISEML_HOME": str(home)}, running=False)


def test_names_come_from_the_server(home: Path) -> None:
    with serve_once(home, send(ANSWER + b'{"names": ["4", "4.worker.1", "144.1"]}')):
        assert ask(home) == ["4", "4.worker.1", "144.1"]


@pytest.mark.parametrize("name", ["$(touch x)", "`x`", "4;x", "4 5", "\\u001b[2J", "-rf", "", "a" * 101, "é"])
def test_a_name_that_a_shell_might_evaluate_is_left_out(home: Path, name: str) -> None:
    with serve_once(home, send(ANSWER + f'{{"names": ["{name}", "4"]}}'.encode())):
        assert ask(home) == ["4"]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense",
        b"HTTP/1.1 404 Not Found\r\n\r\n{}",
        ANSWER + b"[]",
        ANSWER + b'{"names": 4}',
        ANSWER + b'{"names": [[]]}',
        ANSWER + b"[" * 100_000,
        ANSWER + b" " * 300_000,
    ],
    ids=range(8),
)
def test_a_strange_answer_is_neither_a_name_nor_a_message(home: Path, answer: bytes) -> None:
    def tolerant(connection: socket.socket) -> None:
        try:
            send(answer)(connection)
        except BrokenPipeError:
            assert len(answer) > 1 << 18, "the reader has had enough"

    with serve_once(home, tolerant):
        assert ask(home) == []


def test_a_server_that_does_not_answer_is_left_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion_names, "_PATIENCE", 0.1)
    asked = threading.Event()

    def hesitate(_: socket.socket) -> None:
        asked.wait(DEADLINE)

    with serve_once(home, hesitate):
        assert ask(home) == []
        asked.set()


def test_no_server_is_asked_where_none_runs_or_another_user_could_answer(home: Path) -> None:
    assert ask(home) == []
    home.chmod(0o777)
    assert ask(home) == []
    assert find_names("", {"RISEML_SERVER": "https://riseml.example.org", "RISEML_HOME": str(home)}, running=True) == []
