"""One exchange over the HTTP door: how a server is reached, and what goes wrong on the way, as errors."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from riseml import errors
from riseml.errors import Refused, RisemlError, Unreachable, UsageError
from riseml.folders import is_private

if TYPE_CHECKING:
    import httpx

    from riseml import wire
    from riseml.settings import Settings

SERVER_VARIABLE = "RISEML_SERVER"
KEY_VARIABLE = "RISEML_API_KEY"

_CONNECT = 5.0  # seconds
_ANSWER = 30.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is: a unix socket, or a URL with an API key."""

    socket: Path | None = None
    url: str = "http://riseml"
    key: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.url if self.socket is None else str(self.socket)


def read_address(settings: Settings, environ: Mapping[str, str]) -> Address:
    """The server that RISEML_SERVER names, or this user's own.

    Raises:
        UsageError: the variable holds no URL.
        Refused: the folder of the own server's socket is somebody else's, and so whoever answers there.
    """
    url = environ.get(SERVER_VARIABLE, "").strip().rstrip("/")
    if not url:
        return Address(_own_socket(settings))
    if not _is_url(url):
        raise UsageError(f"{SERVER_VARIABLE} is {url!r}", "give a URL such as https://riseml.example.org:8443")
    return Address(None, url, environ.get(KEY_VARIABLE) or None)


def _own_socket(settings: Settings) -> Path:
    folder = settings.socket.parent
    if folder != settings.home and folder.exists() and not is_private(folder):
        raise Refused(
            f"{folder}, where your server's socket would be, is not a folder of yours alone",
            "remove it, or choose a RISEML_HOME with a shorter path",
        )
    return settings.socket


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and " " not in text
    except ValueError:  # a port that is none, or half of an IPv6 address
        return False


class Lost(Unreachable):
    """The request was sent; whether it had an effect is not known."""


def make_error(body: wire.FailureBody) -> RisemlError:
    """The error that a server refused with, as it was raised there."""
    if body.get("problems"):
        from riseml.spec.yaml.problems import Problem, Severity, SpecError

        told = [dict(problem, severity=Severity(problem["severity"])) for problem in body["problems"]]
        return SpecError([Problem(**problem) for problem in told])  # type: ignore[arg-type]  # a dict has one type of value
    found = getattr(errors, body["kind"], None)
    if isinstance(found, type) and issubclass(found, RisemlError):
        return found(body["message"], body["hint"])
    error = RisemlError(body["message"], body["hint"])
    error.exit_code = body["exit_code"]
    return error


class Exchange:
    """The connections to one server.

    Every method raises a `RisemlError`: what the server refused with, or `Unreachable`.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._http: httpx.Client | None = None

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def ask(self, method: str, path: str, **request: Any) -> object:
        """The JSON of a successful answer."""
        with self.request(method, path, **request) as response:
            self.check(response)
            try:
                return json.loads(response.read())
            except ValueError:
                raise self._strange(response) from None

    @contextmanager
    def request(self, method: str, path: str, timeout: float = _ANSWER, **request: Any) -> Iterator[httpx.Response]:
        """One exchange; trouble on the way, also while the answer is read, becomes `Unreachable`."""
        if self._http is None:
            self._http = self._open()
        httpx = _import_httpx()
        limits = httpx.Timeout(timeout, connect=_CONNECT)
        try:
            with self._http.stream(method, f"/v1{path}", timeout=limits, **request) as response:
                yield response
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise self._absent(str(error)) from error
        except httpx.TimeoutException as error:
            raise Lost(
                f"the riseml server at {self.address} has not answered for {timeout:.0f} s",
                "what was asked may have been done all the same: look with `riseml status`",
            ) from error
        except httpx.TransportError as error:
            raise Lost(
                f"the riseml server at {self.address} broke the connection ({error})",
                "what was asked may have been done all the same: look with `riseml status`",
            ) from error

    def _open(self) -> httpx.Client:
        """Connections, once something is known to listen: httpx would leave a socket open when nothing does."""
        if self.address.socket is not None:
            try:
                with socket.socket(socket.AF_UNIX) as knock:
                    knock.settimeout(_CONNECT)
                    knock.connect(str(self.address.socket))
            except PermissionError:
                raise Refused(
                    f"{self.address} is somebody else's: {os.strerror(errno.EACCES)}",
                    "name a folder of yours in RISEML_HOME",
                ) from None
            except OSError as error:
                raise self._absent(error.strerror or str(error)) from None
        return _open(self.address)

    def check(self, response: httpx.Response) -> None:
        """Raise what the server refused with, if it did."""
        if not response.is_success:
            try:
                body = json.loads(response.read())["error"]
                raise make_error(body)
            except (ValueError, KeyError, TypeError):
                raise self._strange(response) from None

    def _absent(self, why: str) -> Unreachable:
        if self.address.socket is not None:
            return Unreachable(
                f"no riseml server answers at {self.address} ({why})", "`riseml server start` starts yours"
            )
        return Unreachable(
            f"no riseml server answers at {self.address} ({why})",
            f"check the address in {SERVER_VARIABLE}; without it, riseml uses your own server",
        )

    def _strange(self, response: httpx.Response) -> Unreachable:
        return Unreachable(
            f"{self.address} answered {response.status_code}, and not as a riseml server does",
            f"check {SERVER_VARIABLE}" if self.address.socket is None else "`riseml server stop`, then try again",
        )


def _open(address: Address) -> httpx.Client:
    make = _import_httpx()
    headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
    if address.socket is None:
        return cast("httpx.Client", make.Client(base_url=address.url, headers=headers))
    import ssl

    # No TLS on a unix socket: a context without certificates spares loading those of the whole world.
    transport = make.HTTPTransport(uds=str(address.socket), verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    made = make.Client(base_url=address.url, headers=headers, transport=transport, trust_env=False)
    return cast("httpx.Client", made)


def _import_httpx() -> Any:
    """httpx without its own command line, which would import rich and pygments: 0.10 s instead of 0.24 s.

    None in `sys.modules` is Python's documented way to say that a module cannot be imported; httpx expects that.
    """
    if "httpx" not in sys.modules:
        sys.modules["httpx._main"] = None  # type: ignore[assignment]  # typeshed knows modules alone
    import httpx

    return httpx
