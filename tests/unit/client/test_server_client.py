"""The client of a server: logs that go on after a break, submissions that are repeated, snapshots sent once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base import errors
from riseml.client.server_client import Address, Client, LogQuery, RetryPolicy
from tests.unit.cli.fake_server import FakeServer, end, line, make_experiment, state


def test_a_log_is_read_to_its_end(client: Client, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [state("RUNNING", 1), line("a", 2), {"type": "ping", "cursor": "2"}, end()]
    assert [entry["type"] for entry in client.stream_log("4")] == ["state", "line", "end"]


@pytest.mark.parametrize("cuts", [[0], [1], [2, 3], [0, 0, 5, 1], [7]], ids=str)
def test_a_broken_log_stream_continues_after_the_last_entry(
    client: Client, fake_server: FakeServer, cuts: list[int]
) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [*(line(str(number), number) for number in range(10)), end()]
    fake_server.cuts = list(cuts)
    heard: list[int] = []
    texts = [entry["text"] for entry in client.stream_log("4", on_cut=heard.append) if entry["type"] == "line"]
    assert texts == [str(number) for number in range(10)]
    assert len(heard) == len(cuts)


@pytest.mark.parametrize("cut", range(7))
def test_entries_that_one_cursor_names_together_come_once(client: Client, fake_server: FakeServer, cut: int) -> None:
    """A line that ends with a report: the report comes first, and both come again to a client without the line."""
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [line("a", 0), line("report", 0), line("b", 1), line("c", 2), line("last", 2), end()]
    fake_server.cuts = [cut]
    texts = [entry["text"] for entry in client.stream_log("4") if entry["type"] == "line"]
    assert texts == ["a", "report", "b", "c", "last"]


def test_a_reconnect_sends_the_cursor_and_since_but_no_tail(client: Client, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [line("a", 1), line("b", 2), end()]
    fake_server.cuts = [1]
    list(client.stream_log("4", LogQuery(tail=2, since="2026-08-31T07:00:00Z")))
    asked = [question for question in fake_server.asked if "/logs" in question]
    assert [("tail=2" in question, "cursor=1" in question, "since=" in question) for question in asked] == [
        (True, False, True),
        (False, True, True),
    ]


def test_a_stream_without_an_end_entry_is_requested_again_only_when_following(
    client: Client, fake_server: FakeServer
) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [line("a", 1)]
    assert len(list(client.stream_log("4", LogQuery(follow=False)))) == 1
    follow = client.stream_log("4")
    assert next(follow)["type"] == "line"
    fake_server.entries.append(end())
    assert [entry["type"] for entry in follow] == ["end"]


def test_a_server_lost_for_longer_than_the_limit_is_unreachable(fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.answers["GET /experiments/4/logs"] = (
        503,
        {"error": {"kind": "Unreachable", "message": "m", "hint": None}},
    )
    moments = iter(range(0, 1000, 10))
    with (
        Client(
            Address(fake_server.home / "server.sock"), RetryPolicy(60, lambda: next(moments), lambda _: None)
        ) as client,
        pytest.raises(errors.Unreachable),
    ):
        list(client.stream_log("4"))
    assert len(fake_server.asked) == 7


def test_text_may_contain_any_line_separator(client: Client, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    text = "a\u2028b\x85c\x0bd\x1ce"
    fake_server.entries = [line(text, 1), end()]
    entry = next(client.stream_log("4"))
    assert entry["type"] == "line"
    assert entry["text"] == text


def test_a_snapshot_is_sent_in_pieces(client: Client, fake_server: FakeServer) -> None:
    assert not client.has_snapshot("abc")
    client.put_snapshot("abc", iter([b"one", b"two"]))
    assert client.has_snapshot("abc")
    assert fake_server.snapshots["abc"] == b"onetwo"


def test_a_server_that_cannot_look_for_a_snapshot_says_why(client: Client, fake_server: FakeServer) -> None:
    fake_server.answers["HEAD /snapshots/abc"] = (503, "")
    fake_server.refuse("POST /reruns/check", "StoreError", "the store cannot grow: its disk is full", status=503)
    with pytest.raises(errors.StoreError, match="its disk is full") as raised:
        client.has_snapshot("abc")
    assert raised.value.hint == "do this"


@pytest.mark.parametrize("missing", [[], [{"part": "code", "message": "m"}]])
def test_a_server_that_can_look_again_is_believed(
    client: Client, fake_server: FakeServer, missing: list[dict[str, str]]
) -> None:
    fake_server.answers["HEAD /snapshots/abc"] = (503, "")
    fake_server.answers["POST /reruns/check"] = (200, {"missing": missing})
    assert client.has_snapshot("abc") is not bool(missing)


def test_an_error_while_packing_is_not_called_a_network_error(client: Client) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"one"
        raise errors.UsageError("a file changed")

    with pytest.raises(errors.UsageError, match="a file changed"):
        client.put_snapshot("abc", pieces())


def test_a_submission_whose_answer_is_lost_is_repeated_with_its_key(client: Client, fake_server: FakeServer) -> None:
    fake_server.lost = ["POST /experiments"] * 2
    assert client.submit({"project": "p", "file": "f", "config": "c", "key": "k"})["id"] == "4"
    assert fake_server.asked.count("POST /experiments") == 3


def test_a_submission_whose_server_ended_may_have_been_accepted(tmp_path: Path) -> None:
    """The first request is read, and its connection breaks; then no server listens."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "server.sock"))
        door.listen()

        def end_server() -> None:
            connection, _ = door.accept()
            with connection:
                connection.recv(1)
            door.close()

        server = threading.Thread(target=end_server)
        server.start()
        with (
            Client(Address(tmp_path / "server.sock"), RetryPolicy(wait=lambda _: server.join())) as client,
            pytest.raises(errors.Unreachable, match="broke the connection") as raised,
        ):
            client.submit({"project": "p", "file": "f", "config": "c", "key": "k"})
    assert "may have done it" in (raised.value.hint or "")


def test_a_submission_is_not_repeated_without_a_key(client: Client, fake_server: FakeServer) -> None:
    fake_server.lost = ["POST /experiments"]
    with pytest.raises(errors.Unreachable, match="broke the connection") as raised:
        client.submit({"project": "p", "file": "f", "config": "c"})
    assert "riseml status" in (raised.value.hint or "")
    assert len(fake_server.asked) == 1
