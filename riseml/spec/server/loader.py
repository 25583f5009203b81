"""Load a server.yml: its text to a `ServerConfig`, or to all its problems at once."""

from __future__ import annotations

from pathlib import Path

from riseml.base.records import dataclass
from riseml.spec.schema.contract import SERVER_CONTRACT
from riseml.spec.schema.file_check import HomeFile, check_home_file
from riseml.spec.server.builder import build_server_config
from riseml.spec.server.types import ServerConfig
from riseml.spec.yaml.problems import Problem, SpecError

_FILE = HomeFile(
    SERVER_CONTRACT,
    "`riseml server init` writes it, and server.yml.example shows every key",
    most_values=100_000,  # enough for thirty thousand users
)


@dataclass(frozen=True, slots=True)
class CheckedServerConfig:
    """The result of checking a server.yml."""

    config: ServerConfig | None  # None: one of the problems is an error
    problems: tuple[Problem, ...]  # by position


def check_server_config(content: str | bytes, path: str | Path) -> CheckedServerConfig:
    """Check a server.yml. Content never makes it raise; problems are in the result.

    Args:
        content: the text; bytes must be UTF-8.
        path: the file: its name in messages, and its folder, riseml's home, is where relative paths in it begin.
    """
    return CheckedServerConfig(*check_home_file(_FILE, content, path, build_server_config))


def load_server_config(content: str | bytes, path: str | Path) -> ServerConfig:
    """Return the content of a server.yml; the arguments are those of `check_server_config`.

    Raises:
        SpecError: the file has errors; all its problems are listed.
    """
    checked = check_server_config(content, path)
    if checked.config is None:
        raise SpecError(checked.problems)
    return checked.config
