"""URLs of Docker Engines: `unix:///var/run/docker.sock`, `ssh://user@host[:port][/socket]`, `tcp://host:port`."""

from __future__ import annotations

import enum
import re
from urllib.parse import SplitResult, urlsplit

from riseml.base.records import dataclass
from riseml.spec.scalars.texts import BadText, quote_text

REMOTE_SOCKET = "/var/run/docker.sock"

_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")  # the last: IPv6
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@\\-]*")
_SOCKET = re.compile(r"(/[A-Za-z0-9._+-]+)+")
_SPACE = re.compile(r"[\s\0-\x1f\x7f]")
_HINT = "write ssh://user@host, tcp://host:2376 or unix:///var/run/docker.sock"
_LONGEST = 400  # characters


class Scheme(enum.Enum):
    """How an engine is reached."""

    UNIX = "unix"
    SSH = "ssh"
    TCP = "tcp"


@dataclass(frozen=True, slots=True)
class EngineUrl:
    """The parts of a URL."""

    scheme: Scheme
    host: str = ""  # name or address; empty for unix
    port: int | None = None  # None: the default port of ssh
    user: str | None = None  # user for ssh; None: the user that ssh itself chooses
    socket: str = ""  # path of the engine's unix socket, on this machine (unix) or on the host (ssh); empty for tcp

    def __str__(self) -> str:
        """Return the canonical spelling of this URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = "" if self.user is None else f"{self.user}@"
        port = "" if self.port is None else f":{self.port}"
        path = "" if self.scheme is Scheme.SSH and self.socket == REMOTE_SOCKET else self.socket
        return f"{self.scheme.value}://{user}{host}{port}{path}"


def parse_engine_url(text: str) -> EngineUrl:
    """Return the parts of a URL.

    Example: `parse_engine_url("ssh://me@gpu1:2222")` is
    `EngineUrl(Scheme.SSH, "gpu1", 2222, "me", "/var/run/docker.sock")`.

    Raises:
        BadText: the text is not the URL of an engine.
    """
    if len(text) > _LONGEST or _SPACE.search(text):
        raise BadText(f"{quote_text(text)} is not a URL", _HINT)
    match = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", text)
    if match is None:
        raise BadText(f"{quote_text(text)} is not a URL", _hint_without_scheme(text))
    scheme = match[1].lower()
    if scheme == "unix":
        return _read_unix(match[2])
    if scheme not in ("ssh", "tcp"):
        raise BadText(f"{scheme}:// is not supported", _hint_other_scheme(scheme, match[2]))
    return _read_remote(Scheme(scheme), text)


def _hint_without_scheme(text: str) -> str:
    if text.startswith("/"):
        return f"write unix://{text}"
    return f"write ssh://{text}" if re.fullmatch(r"[\w.-]+(@[\w.-]+)?", text) else _HINT


def _hint_other_scheme(scheme: str, place: str) -> str:
    if scheme in ("http", "https") and re.fullmatch(r"[\w.-]+(:[0-9]+)?", place):
        return f"write tcp://{place}" if ":" in place else f"write tcp://{place}:2376"
    return _HINT


def _read_unix(path: str) -> EngineUrl:
    if not path.startswith("/") or len(path) < 2:
        raise BadText("a unix socket needs an absolute path", f"write unix:///{path}" if path else _HINT)
    return EngineUrl(Scheme.UNIX, socket=path)


def _read_remote(scheme: Scheme, text: str) -> EngineUrl:
    host, port, parts = _split(text)
    if scheme is Scheme.SSH:
        host = _find_written_host(parts)
    if not host:
        raise BadText("the URL has no host", _HINT)
    if _HOST.fullmatch(host) is None:
        raise BadText(f"{quote_text(host)} is not a host name", "use letters, digits, dots and -, or an address")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise BadText("nothing may follow the path of the URL", "remove the part that begins with ? or #")
    if parts.password is not None:
        raise BadText("a URL must not contain a password", "ssh uses keys (see `identity`), tcp uses `tls`")
    if scheme is Scheme.SSH:
        return _read_ssh(host, port, parts)
    if parts.username is not None:
        raise BadText("a tcp:// URL has no user", "`tls` identifies the client; for a user, use ssh://")
    if parts.path not in ("", "/"):
        raise BadText("a tcp:// URL has no path", f"write tcp://{parts.netloc}")
    if port is None:
        raise BadText("the port is missing", f"write tcp://{parts.netloc.rstrip(':')}:2376")
    return EngineUrl(scheme, host, port)


def _read_ssh(host: str, port: int | None, parts: SplitResult) -> EngineUrl:
    user = parts.username
    if user is not None and _USER.fullmatch(user) is None:
        raise BadText(f"{quote_text(user)} is not a user name", "write ssh://user@host")
    socket = parts.path if parts.path not in ("", "/") else REMOTE_SOCKET
    if _SOCKET.fullmatch(socket) is None:  # ssh would read a colon as a separator, and % and $ as expansions
        raise BadText(f"{quote_text(socket)} is not the path of a socket", "use letters, digits, / . _ + and -")
    return EngineUrl(Scheme.SSH, host, port, user, socket)


def _find_written_host(parts: SplitResult) -> str:
    """Return the host with its capital letters, which `hostname` lacks: the aliases of ~/.ssh/config have them."""
    return re.sub(r":[0-9]*$", "", parts.netloc.rpartition("@")[2]).strip("[]")


def _split(text: str) -> tuple[str, int | None, SplitResult]:
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        port = parts.port
    except ValueError as error:
        raise BadText("the URL has no valid host and port", "a port is 1 to 65535; IPv6 goes in brackets") from error
    if port == 0:
        raise BadText("0 is not a port", "a port is 1 to 65535")
    return host, port, parts
