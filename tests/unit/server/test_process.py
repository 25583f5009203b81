"""The process of a server: its socket, the requests under way, and when it is idle."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from riseml.base.errors import Refused
from riseml.base.settings import Settings, read_settings
from riseml.client.exchange import read_address
from riseml.server import process
from riseml.server.app import Application
from riseml.server.clock import now
from riseml.server.data.output_saver import OutputSaver, SaveProgress
from riseml.server.home_lock import HomeLock
from riseml.server.process import _answer_requests, _bind_socket, _is_idle, _Pause
from riseml.server.web.access import WebAccess
from riseml.server.web.listener import WebListener
from tests.support.callers import ME
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.server.data.test_data_fetcher import make_fetcher

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def application(tmp_path: Path) -> Any:
    """A server without experiments that has been idle for long."""
    _, hosts = make_fetcher(tmp_path)
    services = SimpleNamespace(
        loops=SimpleNamespace(
            notifier=SimpleNamespace(count_feeds=lambda: 0), passes=SimpleNamespace(active_at=LONG_AGO)
        ),
        stores=SimpleNamespace(experiments=SimpleNamespace(count_open=lambda: 0)),
        data=SimpleNamespace(saver=OutputSaver("5e17e4", hosts)),
        web=WebListener(WebAccess(tmp_path / "web.json"), lambda session: ME),
    )
    webhooks = SimpleNamespace(has_waiting=lambda: False)
    return SimpleNamespace(services=services, webhooks=webhooks, api=None, gate=None, tls=None, tls_gate=None)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path, tmp_path / "output", tmp_path / "data", idle_after=1800.0)


def test_a_server_for_a_team_is_never_idle(application: Any, settings: Settings) -> None:
    application.tls = SimpleNamespace()
    assert not _is_idle(application, settings)


def test_a_server_with_nothing_to_do_is_idle(application: Any, settings: Settings) -> None:
    assert _is_idle(application, settings)


def test_an_output_that_is_copied_keeps_the_server(application: Any, settings: Settings) -> None:
    application.services.data.saver._progress[4] = SaveProgress(0, 0)
    assert not _is_idle(application, settings)
    application.services.data.saver._progress.clear()
    application.services.loops.passes.active_at = LONG_AGO
    application.services.data.saver._requested.add(4)
    assert not _is_idle(application, settings)


def test_a_notice_that_waits_keeps_the_server(application: Any, settings: Settings) -> None:
    application.webhooks.has_waiting = lambda: True
    assert not _is_idle(application, settings)


def test_a_request_under_way_keeps_the_server(
    application: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_CHECK_INTERVAL", 0.01)
    passes, stop = application.services.loops.passes, threading.Event()
    came, release = threading.Event(), asyncio.Event()
    passes.active_at = now()

    async def answer(scope: object, receive: object, send: object) -> None:
        passes.active_at = LONG_AGO  # as after half an hour of copying
        came.set()
        await release.wait()

    application.gate, ended = answer, list[_Pause]()
    with _bind_socket(settings.socket, settings.home) as door:
        serving = serve(application, settings, (door, settings.socket.lstat()), stop, ended)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(settings.socket))
            client.sendall(b"GET / HTTP/1.1\r\nHost: riseml\r\n\r\n")
            assert came.wait(DEADLINE)
            wait_for("a check", lambda: ended or passes.active_at > LONG_AGO, DEADLINE)
            assert not ended
            stop.set()
            serving.join()
    assert ended == [_Pause.STOP]


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_server_whose_socket_is_removed_listens_again(
    application: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch, *, replaced: bool
) -> None:
    monkeypatch.setattr(process, "_CHECK_INTERVAL", 0.01)
    application.services.loops.passes.active_at = now()
    stop, ended = threading.Event(), list[_Pause]()
    with _bind_socket(settings.socket, settings.home) as door:
        serving = serve(application, settings, (door, settings.socket.lstat()), stop, ended)
        settings.socket.unlink()
        if replaced:
            settings.socket.touch()
        serving.join(DEADLINE)
    assert ended == [_Pause.NO_SOCKET]


def serve(
    application: Any,
    settings: Settings,
    door: tuple[socket.socket, os.stat_result],
    stop: threading.Event,
    ended: list[_Pause],
) -> threading.Thread:
    """Answer requests in a thread, which notes why it ends."""
    lock = cast(HomeLock, SimpleNamespace(is_held=lambda: True))

    async def answer() -> _Pause:
        asyncio.get_running_loop().add_signal_handler = lambda *_: None  # type: ignore[method-assign]  # no main thread
        return await _answer_requests(cast(Application, application), settings, lock, door, stop)

    serving = threading.Thread(target=lambda: ended.append(asyncio.run(answer())))
    serving.start()
    return serving


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Settings]:
    """The settings of a home with a long path; what it has below /tmp is removed."""
    home = tmp_path / ("h" * 100)
    home.mkdir()
    settings = read_settings({"RISEML_HOME": str(home)})
    yield settings
    settings.socket.unlink(missing_ok=True)
    settings.socket.parent.rmdir()


def test_a_long_home_has_its_socket_in_a_folder_of_its_user_alone(far: Settings) -> None:
    assert read_address(far, {}).socket == far.socket
    with _bind_socket(far.socket, far.home):
        assert far.socket.parent.stat().st_mode & 0o077 == 0
        assert far.socket.stat().st_mode & 0o077 == 0
        assert read_address(far, {}).socket == far.socket


def test_no_process_serves_or_connects_in_a_folder_that_others_may_enter(far: Settings) -> None:
    far.socket.parent.mkdir()
    far.socket.parent.chmod(0o777)
    with pytest.raises(PermissionError, match="is not a folder of yours alone"):
        _bind_socket(far.socket, far.home)
    with pytest.raises(Refused, match="does not belong to you alone"):
        read_address(far, {})
