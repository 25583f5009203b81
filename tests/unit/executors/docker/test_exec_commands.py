"""The end of commands that a former server forgot, in a container whose shell is the user's: it may say anything."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from riseml.executors.docker import exec_commands
from riseml.executors.docker.exec_commands import end_forgotten_commands
from riseml.executors.transports.engine_client import Engine
from tests.support.waiting import DEADLINE


class ContainerEngine:
    """An engine with one container, whose shell says `said` and then a byte every moment, without an end."""

    def __init__(self, said: bytes) -> None:
        self._said = said
        self._left = threading.Event()
        self.signals: list[str] = []

    @contextmanager
    def api(self) -> Iterator[ContainerEngine]:
        yield self

    def inspect_container(self, name: str) -> dict[str, Any]:
        return {"Name": name, "ExecIDs": ["1"]}

    def exec_create(self, name: str, command: list[str], **_: object) -> dict[str, str]:
        self.signals.append(command[4])
        return {"Id": name}

    def open_stream(self, path: str, body: object) -> tuple[socket.socket, bytes]:
        near, far = socket.socketpair()
        threading.Thread(target=self._speak, args=(far,), daemon=True).start()
        return near, b""

    def _speak(self, far: socket.socket) -> None:
        with far:
            try:
                far.sendall(struct.pack(">BxxxI", 1, 1000) + self._said)
                while not self._left.wait(0.02):
                    far.sendall(b" ")
            except OSError:
                self._left.set()  # the sweep has closed its end


@pytest.mark.parametrize("said", [b"", b"no number", "²".encode(), b"9" * 500, b"-3"])
def test_a_shell_that_never_ends_holds_up_no_sweep(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_commands, "_LONGEST_SWEEP", 0.2)
    engine = ContainerEngine(said)
    ended = threading.Event()

    def sweep() -> None:
        end_forgotten_commands(cast("Engine", engine), ["riseml-1"])
        ended.set()

    threading.Thread(target=sweep, daemon=True).start()
    assert ended.wait(DEADLINE), "the sweep has an end of its own"
    assert engine.signals == ["HUP"], "a text that is not a number is not a process"
