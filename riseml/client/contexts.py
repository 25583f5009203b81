"""The servers that a user has logged in to: the file `config` in riseml's home, YAML that its user alone may read.

A context is one server under a name of the user: its address, the key, and the certificate that the user trusts. One
of them is the current one, where commands go; `local` stands for the user's own server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from riseml.base.errors import NotFound, UsageError
from riseml.base.folders import read_private_file
from riseml.base.records import dataclass

if TYPE_CHECKING:
    from riseml.base.settings import Settings

LOCAL = "local"
"""The name that stands for the user's own server. No context has it."""

_FILE = "config"
_MOST = 1 << 20  # bytes of the file
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_HEAD = "# The servers that you have logged in to: `riseml login`, `riseml context`. It has keys: keep it private.\n"


@dataclass(frozen=True, slots=True)
class ServerContext:
    """One server that the user has logged in to."""

    name: str
    url: str  # `https://host[:port]`, or `http://` on loopback
    user: str = ""  # who the key belongs to, as the server has said
    key: str = field(default="", repr=False)  # API key or session; empty after `riseml logout`
    fingerprint: str = ""  # of the certificate in `authority`; empty: the system's authorities are trusted
    authority: str = ""  # PEM: the one certificate that the certificate of the server has to come from
    also: tuple[str, ...] = ()  # other URLs of the server: of its standbys


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts of a user."""

    current: str = LOCAL
    servers: tuple[ServerContext, ...] = ()

    def find(self, name: str) -> ServerContext:
        """Return a context.

        Raises:
            NotFound: there is none of this name.
        """
        for server in self.servers:
            if server.name == name:
                return server
        names = ", ".join([LOCAL, *(server.name for server in self.servers)])
        raise NotFound(f"there is no context {name!r}; there are: {names}", "`riseml login URL` makes one")

    def add(self, server: ServerContext) -> Contexts:
        """Return them with a context, in the place of the one with its name; it is the current one."""
        servers = [other for other in self.servers if other.name != server.name]
        return Contexts(server.name, (*servers, server))

    def put_first(self, url: str) -> Contexts:
        """Return them with a URL as the one that is asked first, where it is another one of a server's."""
        servers = []
        for server in self.servers:
            also = tuple(other for other in (server.url, *server.also) if other != url)
            servers.append(replace(server, url=url, also=also) if url in server.also else server)
        return Contexts(self.current, tuple(servers))

    def remove(self, name: str) -> Contexts:
        """Return them without a context.

        Raises:
            NotFound: there is none of this name.
        """
        server = self.find(name)
        current = LOCAL if self.current == name else self.current
        return Contexts(current, tuple(other for other in self.servers if other is not server))

    def choose(self, name: str) -> Contexts:
        """Return them with another current one.

        Raises:
            NotFound: there is none of this name.
        """
        return Contexts(name if name == LOCAL else self.find(name).name, self.servers)


NO_CONTEXTS = Contexts()
"""What a user has who has never logged in."""


def find_context_file(settings: Settings) -> Path:
    """Return the path of the file."""
    return settings.home / _FILE


def read_contexts(path: Path) -> Contexts:
    """Return the contexts of a file; none when there is no file.

    Raises:
        Refused: other users can read or write the file.
        UsageError: it does not say what such a file says.
    """
    content = read_private_file(path, _MOST)
    if content is None:
        return NO_CONTEXTS
    import yaml  # a user without such a file does without its import

    try:
        return _build_contexts(yaml.safe_load(content.decode()))
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        where = path if place is None else f"{path}:{place.line + 1}"
        problem = str(getattr(error, "problem", None) or error)
        raise UsageError(f"{where} cannot be used: {problem}", "mend it, or remove it and log in again") from None


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file as a whole; only its user can read it, from its first moment on.

    Raises:
        OSError: it cannot be written.
    """
    import tempfile

    import yaml

    servers = {server.name: _list_values(server) for server in contexts.servers}
    text = yaml.safe_dump({"current": contexts.current, "contexts": servers}, sort_keys=False, allow_unicode=True)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{_FILE}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_HEAD + text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def check_context_name(name: str) -> str:
    """Return the name of a new context.

    Raises:
        UsageError: a context cannot have it.
    """
    if name == LOCAL:
        raise UsageError(f"{LOCAL} is your own server, so no other server has this name", "choose another name")
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} is not the name of a context", "use at most 63 letters, digits, . _ and -, such as gpu1"
        )
    return name


def _list_values(server: ServerContext) -> dict[str, str | list[str]]:
    values = {key.name: getattr(server, key.name) for key in fields(server) if key.name not in ("name", "also")}
    return {name: value for name, value in values.items() if value} | (
        {"also": list(server.also)} if server.also else {}
    )


def _build_contexts(content: Any) -> Contexts:
    """Return the contexts in the values of a file.

    Raises:
        ValueError: they are not those of such a file.
    """
    if not isinstance(content, dict) or set(content) - {"current", "contexts"}:
        raise ValueError("it has the keys `current` and `contexts` alone")
    servers = content.get("contexts") or {}
    if not isinstance(servers, dict):
        raise ValueError("`contexts` is a map of names and servers")
    contexts = Contexts(LOCAL, tuple(_build_context(name, values) for name, values in servers.items()))
    current = content.get("current", LOCAL)
    if current != LOCAL and current not in servers:
        raise ValueError(f"`current` names {current!r}, which is not in `contexts`")
    return Contexts(current, contexts.servers)


def _build_context(name: object, values: object) -> ServerContext:
    allowed = {key.name for key in fields(ServerContext)} - {"name"}
    if not isinstance(name, str) or not isinstance(values, Mapping):
        raise ValueError(f"the context {name!r} is a map of {', '.join(sorted(allowed))}")
    unknown = [key for key in values if key not in allowed]
    if unknown:
        raise ValueError(f"the context {name!r} has an unknown key {unknown[0]!r}")
    texts = {key: value for key, value in values.items() if key != "also"}
    wrong = [key for key, value in texts.items() if not isinstance(value, str)]
    if wrong or "url" not in values:
        raise ValueError(f"the context {name!r} needs a text as {wrong[0] if wrong else 'url'}")
    also = values.get("also", [])
    if not isinstance(also, list) or not all(isinstance(url, str) for url in also):
        raise ValueError(f"the context {name!r} needs a list of URLs as also")
    return ServerContext(name, **texts, also=tuple(also))
