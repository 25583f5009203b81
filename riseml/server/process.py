"""The process of the one server of RISEML_HOME, held by a file lock. Read from `main` downwards."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path

import uvicorn

from riseml import __version__
from riseml.base import faultpoints
from riseml.base.errors import Conflict, RisemlError, StoreError
from riseml.base.folders import check_home, make_private
from riseml.base.settings import Settings, read_settings
from riseml.server.app import Application, make_application
from riseml.server.clock import now
from riseml.server.gate.socket_connections import SocketConnection
from riseml.server.home_lock import HomeLock
from riseml.server.http_config import configure_http
from riseml.server.server_file import read_server_config
from riseml.server.server_log import configure_logging
from riseml.server.standby.answers import StandbyApi, StandbyListener
from riseml.server.standby.turn import Turn
from riseml.server.tls.tls_listener import TlsListener
from riseml.store.claim import ClaimTerms, StoreUsed

_CHECK_INTERVAL = 5.0  # seconds between two checks whether the server is idle, and whether its home is there

_TURN_INTERVAL = 0.5  # seconds between two looks of a standby at the claim of the other server

STAY = "--stay"
"""The argument of a server that does not end when it is idle."""

STANDBY = "--standby"
"""The argument of a server that waits until it may take the place of another one, and does not end when it is idle."""

_LEAVE_STORE = 2.0  # seconds that the store gets to close its connections

log = logging.getLogger("riseml.server")


def main(arguments: Sequence[str] = ()) -> int:
    """Serve until a signal or a request ends the server, or until it was idle for long enough; return the exit code.

    The exit code is 4 at once when RISEML_HOME has a server already, or when other users control it.

    Args:
        arguments: `--stay` for a server that does not end when it is idle, `--standby` for one that also waits until
            it may take the place of the server that runs.
    """
    os.umask(0o022)
    try:
        faultpoints.armed()
        settings = read_settings(os.environ)
        is_standby = STANDBY in arguments
        if is_standby or STAY in arguments:
            settings = replace(settings, idle_after=math.inf)
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_home(settings.home)
        if settings.local is not None:
            make_private(settings.local)
        with HomeLock(settings.home, settings.lock) as lock:
            if is_standby:
                _serve_in_turn(settings, lock)
            else:
                lock.take()
                configure_logging(settings)
                _serve(settings, lock, ClaimTerms(lock=lock.describe()))
    except RisemlError as error:
        message = error.message if error.hint is None else f"{error.message}; {error.hint}"
        print("error: " + message.replace("\n", "\n  "), file=sys.stderr)  # the command that started it reads this
        return error.exit_code
    except OSError as error:
        print(f"error: the server cannot start: {error}", file=sys.stderr)
        return 5
    return 0


def _serve_in_turn(settings: Settings, lock: HomeLock) -> None:
    """Wait until the server that runs is gone, then take its place."""
    configure_logging(settings, shared=settings.local is None)
    while True:
        _wait_for_turn(settings, lock)
        if not lock.describe() and settings.server_file.exists():  # the other one still has the address of the team
            lock.end_holder()
            threading.Event().wait(_TURN_INTERVAL)
            lock.try_take()
        lock.begin_serving()
        terms = ClaimTerms(
            shared=True, lock=lock.describe(), patience=settings.takeover_after, on_loss=_leave_after_loss
        )
        try:
            _serve(settings, lock, terms)
        except StoreUsed as error:  # another standby was faster
            log.info("%s", error.message)
            lock.give_back()


def _wait_for_turn(settings: Settings, lock: HomeLock) -> None:
    """Answer as a standby until this server may take the place of the other one. A signal ends the process."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with closing(Turn(settings, lock)) as turn:
        if turn.has_come():
            return
        log.info("riseml %s, process %d, is a standby of %s", __version__, os.getpid(), turn.awaited.holder)
        tls = _listen_as_standby(settings)
        listener = _bind_socket(settings.standby_socket, settings.home)
        public = StandbyApi(settings, lambda: turn.awaited, is_public=True)
        with StandbyListener(StandbyApi(settings, lambda: turn.awaited), listener, tls, public):
            while not stop.wait(_TURN_INTERVAL) and not turn.has_come():
                pass
        settings.standby_socket.unlink(missing_ok=True)
    if stop.is_set():
        raise SystemExit(0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    log.info("%s is gone: this server takes its place", turn.awaited.holder)


def _listen_as_standby(settings: Settings) -> TlsListener | None:
    """Return the listener of a team's standby; None on the machine of the server that has the address.

    Raises:
        RisemlError: server.yml has problems, or there is no certificate: this server could not take over.
    """
    config = read_server_config(settings.server_file)
    if config is None:
        return None
    try:
        return TlsListener(config, settings.home)
    except Conflict as error:
        log.info("this standby answers at its socket alone: %s", error.message)
        return None


def _leave_after_loss(why: str) -> None:
    """End the process at once, with everything that it does: another server may act from now on."""
    log.error("this server ends: %s", why)
    logging.shutdown()
    os._exit(StoreUsed.exit_code)


def _serve(settings: Settings, lock: HomeLock, terms: ClaimTerms) -> None:
    """Run the application until it ends, then leave the process."""
    _raise_file_limit()
    stop = threading.Event()
    application = make_application(settings, stop, terms)
    if terms.shared:
        configure_logging(settings)
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
    listener = _bind_socket(settings.socket, settings.home)
    place = settings.socket.lstat()
    log.info("riseml %s serves %s, process %d", __version__, settings.socket, os.getpid())
    application.services.watchers.metrics.start()
    application.loop.start()
    application.search_loop.start()
    application.webhooks.start()
    while True:
        try:
            pause = asyncio.run(_answer_requests(application, settings, lock, (listener, place), stop))
        except BaseException:
            _remove_socket(settings, place)
            raise
        if pause is _Pause.STOP or (pause is _Pause.IDLE and _is_idle(application, settings)):
            _remove_socket(settings, place)
            return
        application.database.check_claim()
        if pause is _Pause.IDLE:
            log.info("a request came while the idle server was about to end: it goes on")
        else:
            log.warning("%s was removed: this server listens there again", settings.socket)
        listener = _bind_socket(settings.socket, settings.home)
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
    if application.tls is None or application.tls_gate is None:
        await application.services.web.resume(application.api)
    else:
        await application.tls.resume(application.tls_gate)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def count_requests() -> int:
        return len(server.server_state.tasks) + application.services.web.count_requests()

    idle = lost = False
    while not (serving.done() or stop.is_set() or idle or lost):
        idle = await asyncio.to_thread(_is_idle, application, settings, count_requests)
        if not idle:
            await asyncio.to_thread(stop.wait, _CHECK_INTERVAL)
        if not await asyncio.to_thread(lock.is_held):  # a file server that hangs must not stop the answers
            log.error("%s was removed, or it is the home of another server by now: this server ends", settings.home)
            stop.set()
        lost = not await asyncio.to_thread(_leads_to_listener, settings, listener[1])
    server.should_exit = True
    await asyncio.gather(serving, application.services.web.suspend())
    if application.tls is not None:
        await application.tls.suspend()
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


def _remove_socket(settings: Settings, place: os.stat_result) -> None:
    """Remove the socket of this server; at its path may be that of another one, which serves a new home there."""
    if _leads_to_listener(settings, place):
        settings.socket.unlink(missing_ok=True)


def _count_no_request() -> int:
    return 0


def _is_idle(
    application: Application, settings: Settings, count_requests: Callable[[], int] = _count_no_request
) -> bool:
    """Return True when no experiment and no web page has been open for RISEML_IDLE_AFTER, and nothing else was done.

    A server for a team is never idle: no command of its users could start it again.
    A copy of files, a sync and the copy of an output can take longer than that, and a webhook can be out of reach.

    Args:
        application: the server.
        settings: say after how long an idle server ends.
        count_requests: returns how many requests are answered now.
    """
    services = application.services
    if application.tls is not None:
        return False
    passes = services.loops.passes
    active_at = passes.active_at  # first: a request that begins after this look is counted below
    if (
        count_requests()
        or services.loops.notifier.count_feeds()
        or services.data.saver.is_busy()
        or application.webhooks.has_waiting()
    ):
        passes.active_at = active_at = now()
    idle = now() - active_at
    try:
        return idle.total_seconds() > settings.idle_after and services.stores.experiments.count_open() == 0
    except StoreError:  # the loop logs the error; it is unknown whether an experiment is open
        return False


def _bind_socket(path: Path, home: Path) -> socket.socket:
    """Return the listening unix socket; only its user can open it, from its first moment on.

    Raises:
        OSError: its folder in /tmp belongs to another user, or cannot be made.
    """
    if path.parent != home:
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
