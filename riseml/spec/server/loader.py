"""Load a server.yml: its text to a `ServerConfig`, or to all its problems at once."""

from __future__ import annotations

from pathlib import Path

from riseml.base.records import dataclass
from riseml.spec.schema.contract import SERVER_CONTRACT
from riseml.spec.server.builder import build_server_config
from riseml.spec.server.types import ServerConfig
from riseml.spec.yaml.document import parse_document
from riseml.spec.yaml.problems import Problem, Severity, SpecError, sort_problems

_MOST_VALUES = 100_000  # enough for thirty thousand users
_FIRST = "`riseml server init` writes it, and server.yml.example shows every key"


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
    name = str(path)
    document = parse_document(content, name, _FIRST, _MOST_VALUES)
    problems = list(document.problems)
    if document.root is None:
        return CheckedServerConfig(None, sort_problems(problems, name))
    file = SERVER_CONTRACT.check_values(document.root)
    config = build_server_config(file, Path(path).expanduser().absolute().parent)
    problems += file.problems
    usable = all(problem.severity is not Severity.ERROR for problem in problems)
    return CheckedServerConfig(config if usable else None, sort_problems(problems, name))


def load_server_config(content: str | bytes, path: str | Path) -> ServerConfig:
    """Return the content of a server.yml; the arguments are those of `check_server_config`.

    Raises:
        SpecError: the file has errors; all its problems are listed.
    """
    checked = check_server_config(content, path)
    if checked.config is None:
        raise SpecError(checked.problems)
    return checked.config
