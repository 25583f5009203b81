"""The context of a command: the server that it asks, and waits that a new size of the terminal ends."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from riseml.cli.context import wait_or_resize
from tests.unit.cli.conftest import Riseml


def test_a_wait_ends_when_the_terminal_gets_another_size() -> None:
    waited = threading.Event()

    def resize() -> None:
        while not waited.wait(0.01):
            os.kill(os.getpid(), signal.SIGWINCH)

    sender = threading.Thread(target=resize, daemon=True)
    sender.start()
    wait_or_resize(600.0)
    waited.set()
    sender.join()


def test_a_wait_outside_of_the_main_thread_waits() -> None:
    thread = threading.Thread(target=wait_or_resize, args=(0.01,), daemon=True)
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    "url", ["toaster", "http://", "http://:80", "http://a b", "http://[::1", "http://host:99999", "ftp://host"]
)
def test_a_server_address_that_is_not_a_url_is_refused(riseml: Riseml, url: str) -> None:
    result = riseml("status", environ={"RISEML_SERVER": url})
    assert (result.code, result.out) == (2, "")
    assert "RISEML_SERVER is " in result.err
    assert "https://riseml.example.org:8443" in result.err


def test_a_team_server_that_does_not_answer_is_named(riseml: Riseml) -> None:
    result = riseml("status", environ={"RISEML_SERVER": "http://127.0.0.1:1"})
    assert result.code == 5
    assert "http://127.0.0.1:1" in result.err
    assert "RISEML_SERVER" in result.err
