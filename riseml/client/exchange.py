"""One HTTP request to a server: where the server is, how it is reached, and failures as errors of riseml.

`socket_http` does the HTTP on the unix socket of the user's own server. httpx reaches every other server: it knows TLS,
proxies and deadlines. Its import takes longer than the rest of `status`, so riseml imports it at the first request, and
without httpx's own command line: 106 ms instead of 185 ms (`_import_httpx`).
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote, urlsplit

from riseml import __version__
from riseml.base.errors import NotFound, Refused, StandbyServer, Unreachable, UsageError
from riseml.base.folders import check_home, is_private, name_user
from riseml.base.records import dataclass
from riseml.base.settings import HEARTBEAT_HEADER, PLAINTEXT_VARIABLE, allows_plaintext
from riseml.client.answer_check import Answer, AnswerCheck, WrongAnswer
from riseml.client.answer_reader import AnswerCut
from riseml.client.contexts import LOCAL, Contexts, find_context_file, read_contexts
from riseml.client.refusals import make_error
from riseml.client.silence_watch import HEARTBEAT, SilenceWatch
from riseml.client.socket_http import PATIENCE, AnswerOverdue, ServerAnswer, SocketConnections, make_request

if TYPE_CHECKING:
    import httpx

    from riseml import wire
    from riseml.base.settings import Settings

_Answered = TypeVar("_Answered")

SERVER_VARIABLE = "RISEML_SERVER"
KEY_VARIABLE = "RISEML_API_KEY"

_CONNECT = 5.0  # seconds to connect
_ANSWER = 30.0  # seconds of silence in an answer
LOG_SILENCE = 45.0
"""Seconds of silence after which the connection of a log counts as lost: three of the longest heartbeats."""

_IDLE = 3.0  # seconds for which an idle connection to a server over TLS is kept
_LONGEST_WAIT = 2.0  # seconds between two tries
_PEER = struct.Struct("3i")  # pid, uid, gid
_MOST_JSON = 1 << 28  # bytes of an answer; 10,000 experiments take some tens of MB
_LONGEST_ENTRY = 1 << 26  # bytes of one line of an answer; the server reads 4 MiB of a log at once


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is."""

    socket: Path | None = None  # the unix socket of the user's own server; None: the server is at `url`
    url: str = "http://riseml"
    key: str | None = field(default=None, repr=False)  # API key
    authority: str = field(default="", repr=False)  # PEM of the pinned certificate; empty: the system's authorities
    also: tuple[str, ...] = ()  # other URLs of the same server: of its standbys, one of which may have taken over

    def __str__(self) -> str:
        return self.url if self.socket is None else str(self.socket)


def format_path(*parts: str) -> str:
    """Return the address of names below /v1; a name may have any characters.

    Example:
        >>> format_path("experiments", "4.worker.1", "logs")
        '/experiments/4.worker.1/logs'
    """
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def read_address(settings: Settings, environ: Mapping[str, str]) -> Address:
    """Return the address of the server that RISEML_SERVER names (a URL or a context), else that of the current context,
    else that of the user's own server.

    Raises:
        UsageError: RISEML_SERVER is neither a URL nor a context, or has a password in it; or the file of contexts
            cannot be used.
        Refused: the home, the socket or its folder belongs to another user, who could answer there; or code, secrets or
            a key would be sent without TLS.

    Example:
        read_address(read_settings(os.environ), os.environ)
    """
    url = environ.get(SERVER_VARIABLE, "").strip().rstrip("/")
    contexts = read_contexts(find_context_file(settings))
    if not url or not _is_url(url):
        name = url or contexts.current
        return Address(_find_own_socket(settings)) if name == LOCAL else _find_context_address(contexts, name, environ)
    if "@" in urlsplit(url).netloc:
        raise UsageError(f"{SERVER_VARIABLE} has a user or a password in it", f"give the key in {KEY_VARIABLE}")
    for server in contexts.servers:
        if url in (server.url, *server.also):
            return _find_context_address(contexts, server.name, environ)
    key = environ.get(KEY_VARIABLE) or None
    if url.startswith("http://") and not is_loopback(url):
        _refuse_plain_server(url, key, environ)
    return Address(None, url, key)


def _find_context_address(contexts: Contexts, name: str, environ: Mapping[str, str]) -> Address:
    """Return the address of a context.

    Raises:
        UsageError: there is no such context.
        Refused: its key would be sent without TLS.
    """
    try:
        server = contexts.find(name)
    except NotFound:
        raise UsageError(
            f"{SERVER_VARIABLE} is {name!r}, which is neither a URL nor a context",
            "give a URL such as https://riseml.example.org:8443; or `riseml context` lists the names",
        ) from None
    key = environ.get(KEY_VARIABLE) or server.key or None
    for url in (server.url, *server.also):
        if not url.startswith("https://") and not is_loopback(url):
            _refuse_plain_server(url, key, environ)
    return Address(None, server.url, key, server.authority, server.also)


def _refuse_plain_server(url: str, key: str | None, environ: Mapping[str, str]) -> None:
    """Refuse a server at another machine over a connection that others can read and change."""
    if key is not None:
        raise Refused(
            f"{SERVER_VARIABLE} is {url}, and {KEY_VARIABLE} is set: a key is never sent without TLS",
            "give the https:// address of the server; http:// is for loopback alone",
        )
    if not allows_plaintext(environ):
        raise Refused(
            f"{SERVER_VARIABLE} is {url}, which is not encrypted: others on the network can read code and secrets",
            "give the https:// address of the server; or, in a network that you trust and without a key,"
            f" set {PLAINTEXT_VARIABLE}=1",
        )


def is_loopback(url: str) -> bool:
    """Return True when a URL leads to this machine."""
    import ipaddress

    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _find_own_socket(settings: Settings) -> Path:
    check_home(settings.home)
    folder = settings.socket.parent
    if folder != settings.home and folder.exists() and not is_private(folder):
        raise Refused(
            f"{folder}, the folder of your server's socket, does not belong to you alone",
            "remove it, or choose a RISEML_HOME with a shorter path",
        )
    _check_socket(settings.socket)
    return settings.socket


def _check_socket(path: Path) -> None:
    try:
        status = path.lstat()
    except OSError:  # no server runs, or the connection will report the error
        return
    if status.st_uid != os.geteuid() or not stat.S_ISSOCK(status.st_mode):
        noun = "a socket" if stat.S_ISSOCK(status.st_mode) else "not a socket"
        raise Refused(
            f"{path} is {noun} of {name_user(status.st_uid)}, not your server's socket",
            "remove it, or name a folder of your own in RISEML_HOME",
        )


def check_peer(sock: socket.socket, path: Path) -> None:
    """Refuse a server of another user before anything is sent to it.

    Raises:
        Refused: the process at the other end of the socket belongs to another user.
    """
    if not hasattr(socket, "SO_PEERCRED"):  # not Linux: only the check of the home protects there
        return
    _, uid, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if uid != os.geteuid():
        raise Refused(
            f"the server at {path} runs as {name_user(uid)}, not as you: nothing was sent to it",
            "name a folder of your own in RISEML_HOME",
        )


def _find_peer(sock: socket.socket) -> int:
    """Return the id of the process at the other end of a unix socket; 0: it is not known."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    pid, _, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return int(pid)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and " " not in text
    except ValueError:  # an invalid port or IPv6 address
        return False


_LOST_HINT = "the server may have done it: `riseml status` shows"


class AnswerLost(Unreachable):
    """The request was sent and its answer was not received: the server may have done it."""


class AnswerLate(AnswerLost):
    """The server took the request and did not answer in time: it runs, and may stand still."""


class ServerAbsent(Unreachable):
    """No server takes a connection: nothing was done."""


OnCut = Callable[[int], bool | None]
"""Takes the number of failed tries before each new one, and returns True when another server answers now."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long the client tries to reach a lost server. The waits between two tries grow."""

    limit: float = 60.0  # seconds without an answer
    clock: Callable[[], float] = time.monotonic  # seconds
    wait: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)  # takes seconds


class RetryTimer:
    """Counts the failed tries since the last answer of the server, and their time."""

    def __init__(self, retry: RetryPolicy) -> None:
        self._retry = retry
        self.reset()

    def reset(self) -> None:
        """Start again: the server has answered."""
        self._tries = 0
        self._since = self._retry.clock()

    def wait(self, error: Unreachable | None, on_cut: OnCut | None) -> None:
        """Wait before the next try, longer each time; raise `error` after the limit of the retry policy. The limit
        begins again with each new server that `on_cut` has found or started."""
        if error is not None and self._retry.clock() - self._since > self._retry.limit:
            raise error
        if on_cut is not None and on_cut(self._tries):
            self._since = self._retry.clock()
        self._retry.wait(min(_LONGEST_WAIT, 0.1 * 2**self._tries) if self._tries else 0)
        self._tries += 1


class SilenceNotes:
    """Tells the user that a server is silent, and that it answers again; each time once. Safe from many threads."""

    def __init__(self) -> None:
        self.on_silence: Callable[[int], object] | None = None  # takes the id of the server's process, or 0
        self.on_answer: Callable[[], object] | None = None
        self._lock = threading.Lock()
        self._is_silent = False

    def begin(self, server: int) -> None:
        """Note that nothing has come for `PATIENCE` seconds."""
        with self._lock:
            is_new, self._is_silent = not self._is_silent, True
        if is_new and self.on_silence is not None:
            self.on_silence(server)

    def end(self) -> None:
        """Note that the server has sent something."""
        if not self._is_silent:  # nearly always
            return
        with self._lock:
            was_silent, self._is_silent = self._is_silent, False
        if was_silent and self.on_answer is not None:
            self.on_answer()


class Exchange:
    """The connections to one server.

    Raises:
        RisemlError: every method raises the error that the server refused with, or `Unreachable`.

    Args:
        address: of the server.
        silence: hears when the server is silent, and when it answers again.
        patience: seconds without a sign of life after which it is silent; None: `PATIENCE`.
    """

    def __init__(self, address: Address, silence: SilenceNotes | None = None, patience: float | None = None) -> None:
        self.address = address
        self.silence = silence or SilenceNotes()
        self.check = AnswerCheck()  # a client of a server of another version sets one that allows absent keys
        self._patience = patience
        self._server = 0  # id of the server's process, at the newest connection; 0: it is not known
        self._http: httpx.Client | None = None  # to a server that is not on a unix socket
        self._urls = deque((address.url, *address.also))  # the first one is asked next
        self._connections = (
            None if address.socket is None else SocketConnections(partial(self.open_socket, address.socket))
        )

    def find_serving(self) -> Address:
        """Return the address with the URL first that answered last, and is not one of a standby."""
        url, *also = self._urls
        return replace(self.address, url=url, also=tuple(also))

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        if self._connections is not None:
            self._connections.close()
        if self._http is not None:
            self._http.close()
            self._http = None

    def request_answer(self, method: str, path: str, shape: type[Answer], **request: Any) -> Answer:
        """Send a request and return the JSON of a successful answer, which is checked.

        Args:
            method: of HTTP.
            path: below /v1, quoted.
            shape: a typed dictionary of `riseml.wire`, by the name that `WIRE_NAMES` gives it.
            request: see `socket_http.make_request`.
        """

        def ask() -> Answer:
            with self.open_response(method, path, **request) as response:
                self.raise_refusal(response)
                answer = self._read_json(response)
                try:
                    return self.check.check(answer, shape)
                except (WrongAnswer, RecursionError) as error:
                    raise self._make_strange_error(response, str(error)) from None

        return self._ask_each(ask, may_repeat="content" not in request)

    def send(self, method: str, path: str, **request: Any) -> None:
        """Send a request whose successful answer tells nothing."""

        def ask() -> None:
            with self.open_response(method, path, **request) as response:
                self.raise_refusal(response)

        self._ask_each(ask, may_repeat="content" not in request)

    def _ask_each(self, ask: Callable[[], _Answered], *, may_repeat: bool) -> _Answered:
        """Ask at one URL after the other, until a server answers that is not a standby.

        Args:
            ask: sends the request.
            may_repeat: the request can be sent again; False: a standby has read its body, which is gone.

        Raises:
            ServerAbsent: at no URL is a server; nothing was done.
            StandbyServer: the last one is a standby.
        """
        for _ in range(len(self._urls)):
            try:
                return ask()
            except (ServerAbsent, StandbyServer) as error:
                last = error
                if isinstance(error, StandbyServer) and not may_repeat:
                    break
        raise last

    def _turn_to_next(self) -> None:
        """Ask at the next URL from now on."""
        self._urls.rotate(-1)
        if len(self._urls) > 1 and self._http is not None:
            self._http.close()
            self._http = None

    @contextmanager
    def open_response(self, method: str, path: str, timeout: float = _ANSWER, **request: Any) -> Iterator[ServerAnswer]:
        """Send a request and yield its response; a failed connection becomes `Unreachable`, also while reading."""
        if self._connections is None:
            with self._open_with_httpx(method, path, timeout, **request) as response:
                yield response
            return
        headers = {"Authorization": f"Bearer {self.address.key}"} if self.address.key else {}
        try:
            with self._connections.open_answer(
                make_request(method, f"/v1{path}", headers, **request),
                timeout,
                self._choose_silence_note(timeout),
                self._patience,
            ) as answer:
                self.silence.end()
                yield answer
        except AnswerOverdue as error:
            raise self._make_late_error(timeout) from error
        except AnswerCut as error:
            raise self._make_cut_error(error) from error

    @contextmanager
    def _open_with_httpx(self, method: str, path: str, timeout: float, **request: Any) -> Iterator[ServerAnswer]:
        if self._http is None:
            self._http = _make_http_client(replace(self.address, url=self._urls[0]))
        httpx = _import_httpx()
        limits = httpx.Timeout(timeout, connect=_CONNECT)
        note = self._choose_silence_note(timeout)
        timer = threading.Timer(self._patience or PATIENCE, lambda: note and note(None))
        timer.daemon = True
        timer.start()
        try:
            with self._http.stream(method, f"/v1{path}", timeout=limits, **request) as response:
                timer.cancel()
                self.silence.end()
                yield response
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            from riseml.client.server_trust import explain_distrust

            distrust = explain_distrust(self._urls[0], self.address.authority, error)
            absent = self._make_absent_error(str(error))
            self._turn_to_next()
            raise distrust or absent from error
        except httpx.TimeoutException as error:
            raise self._make_late_error(timeout) from error
        except httpx.RequestError as error:  # including a body that cannot be decompressed
            raise self._make_cut_error(error) from error
        finally:
            timer.cancel()

    def _choose_silence_note(self, timeout: float) -> Callable[[socket.socket | None], None] | None:
        """Return what notes that an answer has not begun; None for requests that may take longer."""
        if timeout > LOG_SILENCE:
            return None
        return lambda sock: self.silence.begin(0 if sock is None else _find_peer(sock))

    def _make_late_error(self, timeout: float) -> AnswerLate:
        return AnswerLate(f"the riseml server at {self.address} has not answered for {timeout:.0f} s", _LOST_HINT)

    def _make_cut_error(self, error: Exception) -> AnswerLost:
        return AnswerLost(f"the riseml server at {self.address} broke the connection ({error})", _LOST_HINT)

    def save_content(self, path: str, target: IO[bytes], most: int, timeout: float) -> None:
        """Write the content of an answer into a file.

        Raises:
            Refused: the answer has more than `most` bytes. A server could send without end.
        """
        with self.open_response("GET", path, timeout) as response:
            self.raise_refusal(response)
            size = 0
            for piece in response.iter_bytes():
                size += len(piece)
                if size > most:
                    message = f"the riseml server at {self.address} sent more than {most} bytes"
                    raise Refused(message, "set RISEML_UPLOAD_LIMIT here as on the server, if its project is so large")
                target.write(piece)

    def open_socket(self, path: Path) -> socket.socket:
        """Return a connection to the user's own server, after checking that the server belongs to this user.

        Raises:
            Refused: the socket or the server is another user's.
            Unreachable: no server answers.
        """
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(_CONNECT)
            sock.connect(str(path))
            check_peer(sock, path)
            self._server = _find_peer(sock)
        except PermissionError:
            sock.close()
            raise Refused(
                f"{self.address} belongs to another user: {os.strerror(errno.EACCES)}",
                "name a folder of your own in RISEML_HOME",
            ) from None
        except OSError as error:
            sock.close()
            raise self._make_absent_error(error.strerror or str(error)) from None
        except BaseException:
            sock.close()
            raise
        return sock

    def raise_refusal(self, response: ServerAnswer) -> None:
        """Raise the error in the answer when the server refused."""
        if not response.is_success:
            body = self._read_json(response)
            try:
                error = make_error(body["error"])
            except (ValueError, KeyError, TypeError):
                raise self._make_strange_error(response) from None
            if isinstance(error, StandbyServer):
                self._turn_to_next()
            raise error

    def _read_json(self, response: ServerAnswer) -> Any:
        """Return the JSON of an answer; another program may have sent it, and may send without end."""
        size = 0
        pieces = []
        for piece in response.iter_bytes():
            size += len(piece)
            if size > _MOST_JSON:
                raise self._make_strange_error(response)
            pieces.append(piece)
        try:
            return json.loads(b"".join(pieces))
        except (ValueError, RecursionError):
            raise self._make_strange_error(response) from None

    def read_entries(self, response: ServerAnswer) -> Iterator[wire.Entry]:
        """Yield the entry in each line of an answer, as it comes, and note when its heartbeat stays away."""
        try:
            with ExitStack() as stack:
                pieces = response.iter_bytes()
                if float(response.headers.get(HEARTBEAT_HEADER, LOG_SILENCE)) <= HEARTBEAT:
                    watch = stack.enter_context(SilenceWatch(lambda: self.silence.begin(self._server)))
                    pieces = self._end_silences(watch.watch(pieces))
                for line in _split_lines(pieces):
                    yield self.check.check_entry(json.loads(line))
        except WrongAnswer as error:
            raise self._make_strange_error(response, str(error)) from None
        except (ValueError, RecursionError):
            raise self._make_strange_error(response) from None

    def _end_silences(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.silence.end()
            yield piece

    def _make_absent_error(self, why: str) -> ServerAbsent:
        if self.address.socket is not None:
            return ServerAbsent(
                f"no riseml server answers at {self.address} ({why})", "`riseml server start` starts yours"
            )
        return ServerAbsent(
            f"no riseml server answers at {self.address} ({why})",
            f"check the address in {SERVER_VARIABLE}; without it, riseml uses your own server",
        )

    def _make_strange_error(self, response: ServerAnswer, difference: str = "") -> Unreachable:
        message = f"{self.address} answered {response.status_code}, but not as a riseml server does"
        hint = f"check {SERVER_VARIABLE}" if self.address.socket is None else "`riseml server stop`, then try again"
        if difference and self.address.socket is None:
            hint = f"{hint}, and whether the server has the version of this command ({__version__})"
        return Unreachable(f"{message}: {difference}" if difference else message, hint)


def _make_http_client(address: Address) -> httpx.Client:
    make = _import_httpx()
    headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
    # Certificates are always verified. Redirects are not followed, because another server would get the key.
    # Without TLS no proxy is used, because it would get what is meant for this machine alone.
    secure = address.url.startswith("https://")
    verify: object = True
    if secure:
        from riseml.client.server_trust import make_tls_context

        verify = make_tls_context(address.authority)
    # Shorter than a server keeps an idle connection, so that no request meets one that is about to end.
    limits = make.Limits(keepalive_expiry=_IDLE)
    options = {"headers": headers, "verify": verify, "follow_redirects": False, "trust_env": secure, "limits": limits}
    return cast("httpx.Client", make.Client(base_url=address.url, **options))


def _import_httpx() -> Any:
    """Import httpx without its command line, which would import rich and pygments: 0.10 s instead of 0.24 s.

    None in `sys.modules` is Python's documented way to make an import fail; httpx expects that failure.
    """
    if "httpx" not in sys.modules:
        sys.modules["httpx._main"] = None  # type: ignore[assignment]  # typeshed knows modules alone
    import httpx

    return httpx


def _split_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines. Only a newline byte ends a line, because text may contain other line separators.

    Raises:
        ValueError: a line does not end.
    """
    open_line = b""
    for piece in pieces:
        *whole, open_line = (open_line + piece).split(b"\n")
        yield from filter(None, whole)
        if len(open_line) > _LONGEST_ENTRY:
            raise ValueError(f"a line of more than {_LONGEST_ENTRY} bytes")
