"""The process of the one server of RISEML_HOME, held by a file lock. Read from `main` downwards."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
from datetime import timedelta
from enum import Enum, auto

import uvicorn

from riseml import __version__
from riseml.base import faultpoints
from riseml.base.errors import RisemlError, StoreError
from riseml.base.folders import check_home, make_private
from riseml.base.settings import Settings, read_settings
from riseml.server.app import Application, make_application
from riseml.server.clock import now
from riseml.server.gate.socket_connections import SocketConnection
from riseml.server.home_lock import HomeLock
from riseml.server.http_config import configure_http
from riseml.server.server_log import configure_logging

_CHECK_INTERVAL = 5.0  # seconds between two checks whether the server is idle, and whether its home is there

_LEAVE_STORE = 2.0  # seconds that the store gets to close its connections

log = logging.getLogger("riseml.server")


def main() -> int:
    """Serve until a signal or a request ends the server, or until it was idle for long enough; return the exit code.

    The exit code is 4 at once when RISEML_HOME has a server already, or when other users control it.
    """
    os.umask(0o022)
    try:
        faultpoints.armed()
        settings = read_settings(os.environ)
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_home(settings.home)
        with HomeLock(settings.home, settings.lock) as lock:
            lock.take()
            configure_logging(settings)
            _serve(settings, lock)
    except RisemlError as error:
        message = error.message if error.hint is None else f"{error.message}; {error.hint}"
        print("error: " + message.replace("\n", "\n  "), file=sys.stderr)  # the command that started it reads this
        return error.exit_code
    except OSError as error:
        print(f"error: the server cannot start: {error}", file=sys.stderr)
        return 5
    return 0


def _serve(settings: Settings, lock: HomeLock) -> None:
    """Run the application until it ends, then leave the process."""
    _raise_file_limit()
    stop = threading.Event()
    application = make_application(settings, stop)
    gc.freeze()  # all objects so far live as long as the process: the collector never examines them again
    gc.set_threshold(50_000, 20, 100)  # an answer of 10,000 rows, which makes no garbage, takes a third less time
    gc.enable()
    code = 0
    try:
        _serve_until_idle(application, settings, lock, stop)
        log.info("the server ends; training goes on")
    except Exception:
        log.exception("the server failed; training goes on")
        code = 1
    finally:
        if lock.is_held():  # otherwise the socket at this path may belong to another server
            settings.socket.unlink(missing_ok=True)
        application.webhooks.stop()
        application.search_loop.stop()
        application.loop.stop()
        application.services.watchers.metrics.stop()
        application.services.hosts.close()
        _close_store(application)
    logging.shutdown()
    os._exit(code)  # pending actions are not waited for: the next server finds what they made


def _close_store(application: Application) -> None:
    """Close the store's connections; a store that does not answer keeps no server from ending."""
    closing = threading.Thread(target=application.database.close, daemon=True)
    closing.start()
    closing.join(_LEAVE_STORE)


def _serve_until_idle(application: Application, settings: Settings, lock: HomeLock, stop: threading.Event) -> None:
    """Answer requests until `stop` is set, until the server is idle, or until its home is gone. A request at the last
    moment keeps an idle server alive.
    """
    listener = _bind_socket(settings)
    place = settings.socket.lstat()
    log.info("riseml %s serves %s, process %d", __version__, settings.socket, os.getpid())
    application.services.watchers.metrics.start()
    application.loop.start()
    application.search_loop.start()
    application.webhooks.start()
    while True:
        pause = asyncio.run(_answer_requests(application, settings, lock, (listener, place), stop))
        if pause is _Pause.STOP or (pause is _Pause.IDLE and _is_idle(application, settings)):
            return
        if pause is _Pause.IDLE:
            log.info("a request came while the idle server was about to end: it goes on")
        else:
            log.warning("%s was removed: this server listens there again", settings.socket)
        listener = _bind_socket(settings)
        place = settings.socket.lstat()


class _Pause(Enum):
    """Why the server answers no requests for a moment."""

    STOP = auto()  # it ends
    IDLE = auto()  # it ends unless a request comes now
    NO_SOCKET = auto()  # something has removed its socket


async def _answer_requests(
    application: Application,
    settings: Settings,
    lock: HomeLock,
    listener: tuple[socket.socket, os.stat_result],
    stop: threading.Event,
) -> _Pause:
    """Answer requests at the socket `listener` until the server ends, or can no longer be found at its place."""
    server = uvicorn.Server(configure_http(application.gate, SocketConnection))
    serving = asyncio.create_task(server.serve(sockets=[listener[0]]))
    await application.services.web.resume(application.api)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    idle = lost = False
    while not (serving.done() or stop.is_set() or idle or lost):
        requests = len(server.server_state.tasks) + application.services.web.count_requests()
        idle = await asyncio.to_thread(_is_idle, application, settings, requests)
        if not idle:
            await asyncio.to_thread(stop.wait, _CHECK_INTERVAL)
        if not await asyncio.to_thread(lock.is_held):  # a file server that hangs must not stop the answers
            log.error("%s was removed, or it is the home of another server by now: this server ends", settings.home)
            stop.set()
        lost = not await asyncio.to_thread(_leads_to_listener, settings, listener[1])
    server.should_exit = True
    await asyncio.gather(serving, application.services.web.suspend())
    if stop.is_set() or not (idle or lost):
        return _Pause.STOP
    return _Pause.NO_SOCKET if lost else _Pause.IDLE


def _leads_to_listener(settings: Settings, place: os.stat_result) -> bool:
    """Return False when the path of the socket leads to nothing, or to another file."""
    try:
        return os.path.samestat(settings.socket.lstat(), place)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it cannot be looked at now
        return True


def _is_idle(application: Application, settings: Settings, requests: int = 0) -> bool:
    """Return True when no experiment and no web page has been open for RISEML_IDLE_AFTER, and nothing else was done.

    A copy of files, a sync and the copy of an output can take longer than that, and a webhook can be out of reach.

    Args:
        application: the server.
        settings: say after how long an idle server ends.
        requests: how many requests are answered now.
    """
    services = application.services
    if (
        requests
        or services.loops.notifier.count_feeds()
        or services.data.saver.is_busy()
        or application.webhooks.has_waiting()
    ):
        services.loops.passes.active_at = now()
    idle = now() - services.loops.passes.active_at
    try:
        return idle > timedelta(seconds=settings.idle_after) and services.stores.experiments.count_open() == 0
    except StoreError:  # the loop logs the error; it is unknown whether an experiment is open
        return False


def _bind_socket(settings: Settings) -> socket.socket:
    """Return the listening unix socket; only its user can open it, from its first moment on.

    Raises:
        OSError: its folder in /tmp belongs to another user, or cannot be made.
    """
    path = settings.socket
    if path.parent != settings.home:
        make_private(path.parent)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


def _raise_file_limit() -> None:
    """Allow as many open files as the system does: each follower of a log holds one connection."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
