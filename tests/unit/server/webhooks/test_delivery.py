"""One request to a webhook follows no redirect, and ends whatever the other side does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from riseml.server.webhooks.webhook_loop import NotDelivered, post
from tests.support.receiver import Receiver, open_receiver
from tests.support.waiting import DEADLINE


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with open_receiver() as made:
        yield made


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.statuses, receiver.location = [307], f"{receiver.url}/elsewhere"
    with pytest.raises(NotDelivered, match="redirect, which is not followed"):
        post(receiver.url, b"{}", {})
    assert [one.path for one in receiver.received] == ["/"]


@pytest.mark.parametrize("way", ["hangs", "drips"])
def test_an_address_without_an_end_is_left(receiver: Receiver, way: str) -> None:
    setattr(receiver, way, True)
    with pytest.raises(NotDelivered):
        post(receiver.url, b"{}", {}, deadline=0.3)


def test_an_answer_without_an_end_is_left_after_a_slow_connection(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = socket.create_connection

    def connect_slowly(*arguments: Any) -> socket.socket:
        for timer in threading.enumerate():
            if isinstance(timer, threading.Timer):
                timer.join(DEADLINE)  # the deadline passes before the name is resolved
        return connect(*arguments)

    monkeypatch.setattr("socket.create_connection", connect_slowly)
    receiver.drips = True
    with pytest.raises(NotDelivered):
        post(receiver.url, b"{}", {}, deadline=0.3)


def test_an_address_that_is_gone_is_no_answer() -> None:
    with open_receiver() as gone:
        url = gone.url
    with pytest.raises(NotDelivered, match="refused"):
        post(url, b"{}", {})


@pytest.mark.parametrize(
    ("url", "place"),
    [("https://[2001:db8::beef]/x", ("2001:db8::beef", 443)), ("http://[2001:db8::1]/x", ("2001:db8::1", 80))],
)
def test_an_ipv6_address_needs_no_port(monkeypatch: pytest.MonkeyPatch, url: str, place: tuple[str, int]) -> None:
    called: list[object] = []

    def refuse(address: object, *_: object) -> None:
        called.append(address)
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr("socket.create_connection", refuse)
    with pytest.raises(NotDelivered, match="refused"):
        post(url, b"{}", {})
    assert called == [place]
