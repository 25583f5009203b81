"""What secrets, and the hosts of registries, may be called, and how long they are."""

from __future__ import annotations

import re
from dataclasses import field

from riseml.base.errors import UsageError
from riseml.base.records import dataclass

LONGEST_SECRET = 65_536  # bytes
NAME_PATTERN = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
"""Names of secrets. The schema of riseml.yml has it, too."""

_HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]{0,62})(?:\.[a-z0-9][a-z0-9-]{0,62})*|\[[0-9a-f:]{2,45}\])(?::[0-9]{1,5})?", re.IGNORECASE
)
_DOCKER_HUB = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"})
TOKEN_LOGIN = "<token>"  # no password
"""The login of a credential whose password is a token of identity, as Docker writes it."""

HUB = "docker.io"
"""The name of Docker Hub among the hosts of registries."""


@dataclass(frozen=True, slots=True)
class RegistryCredential:
    """What a registry asks for."""

    login: str
    password: str = field(repr=False)


def check_secret_name(name: str) -> str:
    """Return the name of a secret.

    Raises:
        UsageError: a secret cannot have it.
    """
    if re.fullmatch(NAME_PATTERN, name, re.ASCII) is None:
        raise UsageError(
            f"{name[:80]!r} is not the name of a secret",
            "begin with a letter; use at most 64 letters, digits, _, . and -",
        )
    return name


def check_secret_value(value: str) -> str:
    """Return the value of a secret. No error shows it.

    Raises:
        UsageError: a job cannot get it.
    """
    size = len(value.encode("utf-8", "surrogatepass"))
    if not value or "\0" in value:
        raise UsageError(
            "the value is empty" if not value else "the value has a NUL character", "give the text that jobs read"
        )
    if size > LONGEST_SECRET:
        raise UsageError(
            f"the value has {size:,} bytes, and a secret at most {LONGEST_SECRET:,}",
            "keep a large file in data://, which only you read",
        )
    return value


def check_registry_host(text: str) -> str:
    """Return the host of a registry in its usual form: in lower case, with its port.

    Raises:
        UsageError: it is not a host.
    """
    host = text.lower()
    if _HOST.fullmatch(host) is None:
        hint = "write it as in the name of an image: `registry.lab:5000`, or `docker.io` for Docker Hub"
        raise UsageError(f"{text[:80]!r} is not the host of a registry", hint)
    return HUB if host in _DOCKER_HUB else host


def find_registry_host(image: str) -> str:
    """Return the host of the registry of an image; Docker Hub when its name has none.

    Example:
        >>> find_registry_host("registry.lab:5000/team/toaster:2"), find_registry_host("python:3.11")
        ('registry.lab:5000', 'docker.io')
    """
    first, slash, _ = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        return HUB
    return HUB if first.lower() in _DOCKER_HUB else first.lower()
