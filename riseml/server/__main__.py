"""`python -m riseml.server`: one server a home, held by a file lock."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import resource
import signal
import socket
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import TextIO

import uvicorn

from riseml import __version__, faultpoints
from riseml.errors import Refused, RisemlError, StoreError
from riseml.folders import make_private
from riseml.server.app import Application, make_application
from riseml.server.clock import now
from riseml.settings import Settings, read_settings

_CHECK_IDLE = 5.0  # seconds
_FAREWELL = 1.0  # seconds that answers under way are given at the end

log = logging.getLogger("riseml.server")


def main() -> int:
    """Serve until told to stop, or idle for long enough. Exit code 4 at once when this home has a server already."""
    os.umask(0o022)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
    )
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        faultpoints.armed()
        settings = read_settings(os.environ)
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with settings.lock.open("a+") as lock:
            _hold(lock, settings.home)
            _serve(settings)
    except RisemlError as error:
        told = error.message if error.hint is None else f"{error.message}; {error.hint}"
        print("error: " + told.replace("\n", "\n  "), file=sys.stderr)  # lines that go on are indented
        return error.exit_code
    except OSError as error:
        print(f"error: the server cannot start: {error}", file=sys.stderr)
        return 5
    return 0


def _hold(lock: TextIO, home: Path) -> None:
    """Take the lock of the home and write down who has it.

    Raises:
        Refused: another server has it.
    """
    lock.seek(0)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(
            f"process {lock.read().strip() or '?'} is the server of {home} already",
            "`riseml server stop` ends it; another RISEML_HOME has a server of its own",
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()


def _serve(settings: Settings) -> None:
    _raise_limits()
    stop = threading.Event()
    application = make_application(settings, stop)
    code = 0
    try:
        door = _bind(settings)
        log.info("riseml %s serves %s, process %d", __version__, settings.socket, os.getpid())
        application.loop.start()
        while asyncio.run(_run(application, settings, door, stop)) and not _is_idle(application, settings):
            log.info("something came while the server was about to end: it goes on")
            door = _bind(settings)
        log.info("the server ends; training goes on")
    except Exception:
        log.exception("the server failed; training goes on")
        code = 1
    finally:
        settings.socket.unlink(missing_ok=True)
        application.loop.stop()
        application.services.hosts.close()
        application.database.close()
    logging.shutdown()
    os._exit(code)  # actions under way are not waited for: the next server meets what they made


async def _run(application: Application, settings: Settings, door: socket.socket, stop: threading.Event) -> bool:
    """Serve until told to stop; true when it ends because nobody needs it, so that nobody may be left waiting."""
    config = uvicorn.Config(
        application.api, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=int(_FAREWELL)
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[door]))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    idle = False
    while not (serving.done() or stop.is_set() or idle):
        idle = await asyncio.to_thread(_is_idle, application, settings)
        if not idle:
            await asyncio.to_thread(stop.wait, _CHECK_IDLE)
    server.should_exit = True
    await serving
    return idle and not stop.is_set()


def _is_idle(application: Application, settings: Settings) -> bool:
    idle = now() - application.services.passes.active_at
    try:
        return idle > timedelta(seconds=settings.idle_after) and (application.services.experiments.count_open() == 0)
    except StoreError:  # the loop tells; what is active is not known
        return False


def _bind(settings: Settings) -> socket.socket:
    """The unix socket, for this user alone from its first moment on.

    Raises:
        OSError: its folder in /tmp is somebody else's, or there can be none.
    """
    path = settings.socket
    if path.parent != settings.home:
        make_private(path.parent)
    path.unlink(missing_ok=True)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        door.bind(str(path))
    finally:
        os.umask(before)
    door.listen(128)
    return door


def _raise_limits() -> None:
    """One follower holds one connection: as many files as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
