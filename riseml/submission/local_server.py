"""The user's own server: commands start it when it is not running, and replace it when it is older than the command."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from riseml import __version__
from riseml.base.amounts import count_noun
from riseml.base.errors import Refused, StandbyServer, Unreachable
from riseml.base.wire_revision import find_package, read_revision
from riseml.client.contexts import find_context_file, read_contexts
from riseml.client.exchange import SERVER_VARIABLE, Address, AnswerLate, AnswerLost, ServerAbsent
from riseml.client.server_client import Client, read_address
from riseml.client.socket_http import PATIENCE

if TYPE_CHECKING:
    from packaging.version import Version

    from riseml import wire
    from riseml.base.settings import Settings
    from riseml.submission.server_process import ServerProcess, ServerStarter
    from riseml.submission.submitter import Messages

_PROBE_INTERVAL = 0.03  # seconds between two requests while a server ends
_START_INTERVAL = 0.01  # seconds between two tries to connect while a server starts
_RESTART_DELAY = 0.3  # seconds before another server is started
_START_PATIENCE = 10.0  # seconds after which a user learns that a server without a store elsewhere does not start
_MOST_REPLACED = 3  # older servers that one command replaces
_KILLED_PAUSE = 0.1  # seconds; the pauses before servers are started again that were killed while they started grow
_MOST_TOLD = 6  # servers that were killed while they started, after which the user learns of it
_TAKEOVER_PATIENCE = 60.0  # seconds that a command waits for a standby to take over
_TAKEOVER_INTERVAL = 0.5  # seconds between two looks whether it has
_LONGEST_PAUSE = 10.0  # seconds, up to which they grow


def connect_client(settings: Settings, environ: Mapping[str, str], messages: Messages) -> Client:
    """Return a client of the server that RISEML_SERVER names, or of the user's own server.

    The user's own server is started when it does not run, and replaced when it is older than this command.

    Raises:
        Unreachable: the server does not answer, or does not start.
        Refused: the server is of another revision than this command, and cannot be replaced.
    """
    client = _make_client(read_address(settings, environ), messages)
    try:
        if client.address.socket is None:
            server = _ask_team(client, messages)
            serving = client.find_serving()
            if serving.url != client.address.url:
                client.close()
                client = _turn_to(client.address, serving, settings, messages)
                server = client.get_server()
            _check_remote_server(server, client, messages)
            _warn_of_state(server, messages)
            return client
        server = probe_server(client) or _start_own_server(client, settings, environ, messages)
        if _is_stale(server):
            server = _replace_server(client, settings, server, messages)
        _warn_of_state(server, messages)
        _warn_of_settings(server, settings, environ, messages)
    except BaseException:
        client.close()
        raise
    return client


def _start_own_server(
    client: Client, settings: Settings, environ: Mapping[str, str], messages: Messages
) -> wire.ServerView:
    """Start the user's own server. One who has logged in elsewhere learns that this is not the server there."""
    servers = read_contexts(find_context_file(settings)).servers
    if servers and not environ.get(SERVER_VARIABLE):
        names = ", ".join(server.name for server in servers)
        messages.say(
            f"Starting your own server, because no login is current; `riseml context use NAME` goes elsewhere: {names}."
        )
    return _start_server(client, settings, messages.say, None)


def _make_client(address: Address, messages: Messages) -> Client:
    client = Client(address)
    client.call_on_silence(
        lambda pid: messages.say(_describe_silence(client, pid)),
        lambda: messages.say("The riseml server answers again."),
    )
    return client


def _ask_team(client: Client, messages: Messages) -> wire.ServerView:
    """Return the server that answers at one of the addresses. Where all that answer are standbys, wait for one of them
    to take over.

    Raises:
        Unreachable: no server takes over, or none is there.
    """
    pause = threading.Event()
    begun = time.monotonic()
    is_told = False
    while True:
        try:
            return client.get_server()
        except (StandbyServer, ServerAbsent) as error:
            is_over = time.monotonic() - begun > _TAKEOVER_PATIENCE
            if not client.address.also or is_over or (isinstance(error, ServerAbsent) and not is_told):
                raise
            if not is_told:
                messages.say(f"No server of {client.address} serves now. Waiting for a standby to take over.")
            is_told = True
            pause.wait(_TAKEOVER_INTERVAL)


def _turn_to(former: Address, serving: Address, settings: Settings, messages: Messages) -> Client:
    """Return a client of the server that serves, and let the next commands ask it first."""
    from contextlib import suppress

    from riseml.client.contexts import write_contexts

    messages.say(f"{former} does not serve now: commands go to {serving}.")
    path = find_context_file(settings)
    with suppress(OSError):  # the next command finds it out again
        write_contexts(path, read_contexts(path).put_first(serving.url))
    return _make_client(serving, messages)


def check_replaceable(server: wire.ServerView) -> None:
    """Refuse to replace a server of this version and another revision while it is in use, unless it is older.

    It is older when it runs the code that this command has too, which was changed since it started; or when it does not
    say its revision. Of two installations neither is known to be the newer one.

    Raises:
        Refused: another installation of riseml started the server, and it has work.
    """
    package = server.get("package")
    in_use = server["active"] + server.get("closing", 0) + server.get("searches", 0)
    if package in (None, find_package()) or not in_use:
        return
    raise Refused(
        f"the riseml server (process {server['pid']}) is another revision of {server['version']} than this command: it"
        f" runs {package}, the command {find_package()}",
        "use the riseml of the server; or `riseml server stop` lets the next command start its own: training goes on",
    )


def ensure_server(
    client: Client, settings: Settings, tell: Callable[[str], object], starter: ServerStarter | None = None
) -> wire.ServerView:
    """Return the server that answers on the socket; start one when none answers. `tell` takes a sentence for the user.

    Two commands may do this at the same time: one of the two servers then ends with exit code 4, because a home has
    one lock.

    Raises:
        Unreachable: the server does not start.
    """
    return probe_server(client) or _start_server(client, settings, tell, starter)


def restore_server(client: Client, settings: Settings, tell: Callable[[str], object]) -> wire.ServerView:
    """Return the server that answers on the socket, for a command that follows an experiment: one that is killed while
    it starts is started again as often as needed, with pauses that grow.

    Raises:
        Unreachable: the server does not start, and it was not killed.
    """
    from riseml.submission.server_process import ServerStarter, spawn_server

    return ensure_server(client, settings, tell, ServerStarter(spawn_server, most_killed=None))


def probe_server(client: Client) -> wire.ServerView | None:
    """Return the server that answers now; None when none takes a connection, or it ends before it answers.

    Raises:
        Unreachable: a server runs, and does not answer in time, or answers that it cannot. Another one could not start.
    """
    try:
        return client.get_server()
    except AnswerLate:
        raise
    except (ServerAbsent, AnswerLost):
        client.close()
        return None


def stop_server(client: Client, settings: Settings) -> wire.ServerView | None:
    """Stop the server and wait for its end; training goes on. Return the stopped server; None when none ran.

    Raises:
        Unreachable: the server does not end.
    """
    from riseml.submission.server_process import ANSWER_DEADLINE

    server = probe_server(client)
    if server is None:
        return None
    client.stop_server()
    pause = threading.Event()
    begun = time.monotonic()
    while time.monotonic() - begun < ANSWER_DEADLINE:
        after = probe_server(client)
        if (after is None and not _is_there(server["pid"])) or (after is not None and after["pid"] != server["pid"]):
            return server
        pause.wait(_PROBE_INTERVAL)
    message = f"the riseml server (process {server['pid']}) did not end within {ANSWER_DEADLINE:.0f} s"
    raise Unreachable(message, _hint_at_log(settings))


def check_wanted_executor(settings: Settings, environ: Mapping[str, str]) -> None:
    """Check the executor that RISEML_EXECUTOR names, unless the user's server uses it already.

    This prevents starting a server that could not run any job, and replacing one that works.

    Raises:
        RisemlError: it cannot run jobs here and now.
    """
    if settings.executor is None or (settings.executor == "process" and sys.platform == "linux"):
        return  # processes need nothing else
    from riseml.submission.server_process import run_executor_check

    with Client(read_address(settings, environ)) as client:
        if client.address.socket is None:
            return
        server = probe_server(client)
        # A server of an older version does not say whether an engine is missing.
        if server is None or server["executor"] != settings.executor or server.get("missing_engine"):
            run_executor_check(settings)


def switch_executor(client: Client, settings: Settings, messages: Messages) -> None:
    """Restart the user's own server when RISEML_EXECUTOR asks for another executor than it uses.

    Raises:
        Refused: the server still has experiments on its executor.
    """
    executor = settings.executor
    if executor is None or client.address.socket is None:
        return
    server = client.recall_server()  # the state when the command connected
    if server["executor"] == executor and not server["missing_engine"]:
        return
    # The next executor could not clean up after this one; a server of an earlier version counts both as active.
    in_use = server["active"] + server.get("closing", 0)
    if in_use:
        used = server["executor"]
        count = count_noun(in_use, "experiment")
        raise Refused(
            f"the riseml server uses the {used} executor for {count}, so it cannot change to {executor}",
            f"add `--executor {used}` to run this now, or wait until all experiments have ended and are cleaned up",
        )
    stop_server(client, settings)
    ensure_server(client, settings, messages.say)
    messages.say(f"The riseml server now uses the {executor} executor.")


class VersionComparison(Enum):
    """How one version relates to another."""

    OLDER = "older"
    SAME = "same"
    NEWER = "newer"


def compare_versions(foreign: str, own: str) -> VersionComparison:
    """Return how `foreign` relates to `own` in the order of PEP 440, without local labels such as `+cu12`.

    A text that is not a version is older than every version.

    `packaging` is imported (about 10 ms) only when the two texts differ, which is rare.

    Example:
        >>> compare_versions("2.0.0rc1", "2.0.0")
        <VersionComparison.OLDER: 'older'>
    """
    if foreign == own:
        return VersionComparison.SAME
    left = _parse_version(foreign)
    right = _parse_version(own)
    if left is None or right is None:
        if left is right:
            return VersionComparison.SAME
        return VersionComparison.OLDER if left is None else VersionComparison.NEWER
    return (
        VersionComparison.SAME
        if left == right
        else VersionComparison.OLDER
        if left < right
        else VersionComparison.NEWER
    )


def _check_remote_server(server: wire.ServerView, client: Client, messages: Messages) -> None:
    """Compare the server that RISEML_SERVER names with this command, which can neither start nor replace it.

    Raises:
        Refused: it is another revision of this version.
    """
    order = compare_versions(server["version"], __version__)
    if order is VersionComparison.SAME and server.get("revision") != read_revision():
        raise Refused(
            f"the riseml server at {client.address} is another revision of {server['version']} than this command",
            "restart it there with the riseml of this command (`riseml server stop`: training goes on), or use the"
            " riseml of the server here",
        )
    if order is VersionComparison.OLDER:
        messages.warn(
            f"the riseml server at {client.address} is {server['version']}, this command is {__version__}; upgrade"
            " riseml there, then restart it with `riseml server stop`: training goes on"
        )


def _is_there(pid: int) -> bool:
    """Return True while a process of this machine runs: a server that has stopped answering may still be saving.

    A zombie has ended. Its parent may never read its exit code.
    """
    import psutil

    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _parse_version(text: str) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(Version(text).public)
    except InvalidVersion:
        return None


def _describe_silence(client: Client, pid: int) -> str:
    """Return the sentence about a server that takes requests and does not answer."""
    who = f"The riseml server (process {pid})" if pid else f"The riseml server at {client.address}"
    if pid and _is_stopped(pid):
        return f"{who} is stopped and does not answer; `kill -CONT {pid}` lets it go on. Waiting for it."
    return f"{who} has not answered for {PATIENCE:.0f} s. Waiting for it."


def _is_stopped(pid: int) -> bool:
    """Return True for a process that a signal has stopped, or that a debugger holds."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def _start_server(
    client: Client, settings: Settings, tell: Callable[[str], object], starter: ServerStarter | None
) -> wire.ServerView:
    from riseml.submission.server_process import ServerStarter, measure_log, read_start_error, spawn_server

    starter = starter or ServerStarter(spawn_server)
    begun = starter.clock()
    log_size = measure_log(settings.log)
    process = starter.spawn(settings, starter.command)
    killed = 0
    is_told = False
    while (waited := starter.clock() - begun) < starter.deadline:
        if not is_told and waited > (_START_PATIENCE if settings.store is None else PATIENCE):
            is_told = True
            tell(f"Waiting for the riseml server to start (process {process.pid}){_name_store(settings)}.")
        code = _wait_briefly(process)
        if (server := probe_server(client)) is not None:
            if server["pid"] != process.pid:
                process.terminate()  # otherwise it would serve this home later, once that other server has stopped
            return server
        if code in (0, Refused.exit_code):
            # Another server holds the lock. Either it will answer soon, or it is ending, and this command starts the
            # next one.
            starter.wait(_RESTART_DELAY)
            process = starter.spawn(settings, starter.command)
        elif code is not None and code < 0 and starter.may_repeat(killed):  # not its own fault: another one may live
            killed += 1
            _pause_after_kill(starter, killed, tell)
            begun = starter.clock()
            process = starter.spawn(settings, starter.command)
        elif code is not None:
            error = read_start_error(settings.log, log_size)
            raise Unreachable(f"the riseml server did not start: {error}", _hint_at_log(settings))
    raise Unreachable(f"the riseml server did not answer within {starter.deadline:.0f} s", _hint_at_log(settings))


def _pause_after_kill(starter: ServerStarter, killed: int, tell: Callable[[str], object]) -> None:
    """Wait before another server is started after so many that were killed: no time at first, then longer each time."""
    if killed == _MOST_TOLD:
        tell(f"The riseml server was killed {killed} times while it started. Starting it again, with pauses.")
    starter.wait(min(_LONGEST_PAUSE, 2 ** (killed - 1) * _KILLED_PAUSE) if killed > 1 else 0.0)


def _name_store(settings: Settings) -> str:
    """Return the words about a store elsewhere, for which a server may wait; without the user and the password."""
    from urllib.parse import parse_qs, urlsplit

    if settings.store is None:
        return ""
    address = urlsplit(settings.store)
    host = address.hostname or ", ".join(parse_qs(address.query).get("host", ["its usual place"]))
    return f", whose store is the PostgreSQL at {host}"


def _wait_briefly(process: ServerProcess) -> int | None:
    """Return the exit code of the process; None when it still runs after a moment."""
    import subprocess

    try:
        return process.wait(_START_INTERVAL)
    except subprocess.TimeoutExpired:
        return None


def _hint_at_log(settings: Settings) -> str:
    return f"its log is {settings.log}"


def _replace_server(client: Client, settings: Settings, server: wire.ServerView, messages: Messages) -> wire.ServerView:
    fresh = server
    for _ in range(_MOST_REPLACED):
        if compare_versions(fresh["version"], __version__) is VersionComparison.SAME:
            check_replaceable(fresh)
        stop_server(client, settings)
        fresh = ensure_server(client, settings, messages.say)
        if not _is_stale(fresh):
            break
    else:  # such a command starts the server that it has lost
        raise Refused(
            f"another command starts another riseml server again (process {fresh['pid']}) when this one replaces it",
            "end the commands of the other riseml that follow experiments, such as `riseml train`; training goes on",
        )
    if fresh["pid"] != server["pid"]:
        former = server["version"]
        by = "one of this revision" if former == fresh["version"] else fresh["version"]
        messages.say(f"Replaced the riseml server {former} by {by}; training goes on.")
    return fresh


def _is_stale(server: wire.ServerView) -> bool:
    """Return True for a server of an older version, or of this version and another revision."""
    order = compare_versions(server["version"], __version__)
    return order is VersionComparison.OLDER or (
        order is VersionComparison.SAME and server.get("revision") != read_revision()
    )


def _warn_of_state(server: wire.ServerView, messages: Messages) -> None:
    if server.get("problem"):  # an older server does not say
        messages.warn(f"the riseml server can decide nothing now: {server['problem']}")
    if compare_versions(server["version"], __version__) is VersionComparison.NEWER:
        messages.warn(
            f"the riseml server is {server['version']}, this command is {__version__}; upgrade the command with"
            " `pip install --upgrade riseml`"
        )


def _warn_of_settings(
    server: wire.ServerView, settings: Settings, environ: Mapping[str, str], messages: Messages
) -> None:
    """Warn of settings of this command that the running server does not have: it read its own when it started."""
    engine = environ.get("DOCKER_HOST")
    if engine and server["engine"] not in ("", engine) and server["executor"] == "docker":
        _warn_of_setting(f"the engine {server['engine']}", f"DOCKER_HOST={engine}", messages)
    for variable, requested, used in (
        ("RISEML_OUTPUT", settings.output, server.get("output", "")),  # an older server does not say
        ("RISEML_DATA", settings.data, server.get("data", "")),
    ):
        if environ.get(variable) and used not in ("", str(requested)):
            _warn_of_setting(used, f"{variable}={environ[variable]}", messages)


def _warn_of_setting(used: str, requested: str, messages: Messages) -> None:
    messages.warn(
        f"the riseml server uses {used}, not {requested}; `riseml server stop` lets the next command start a server"
        " that does"
    )
