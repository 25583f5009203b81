"""The file server.yml on disk."""

from __future__ import annotations

from pathlib import Path

from riseml.base.errors import UsageError
from riseml.spec.server.types import ServerConfig


def read_server_config(path: Path) -> ServerConfig | None:
    """Return what the file says; None when there is none, and the server answers its own user alone.

    Raises:
        UsageError: the file cannot be read.
        SpecError: it has problems.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "make it readable, or remove it") from error
    from riseml.spec.server.loader import load_server_config  # only a server for a team needs it

    return load_server_config(text, path)
