"""What every command is handed: the outside world as values, so that a test can bring its own."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.errors import NotFound, UsageError

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.printer import Render
    from riseml.client import Client
    from riseml.project.folder import Project
    from riseml.settings import Settings


class Exit(Exception):
    """The command is over, everything was said: leave with this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Tools:
    """The surroundings of one call. `asks` means that there is a person who can answer a question."""

    render: Render
    environ: Mapping[str, str]
    folder: Path
    asks: bool = False
    wait: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)

    def now(self) -> datetime:
        """The moment, in UTC."""
        return datetime.now(UTC)  # noqa: TID251  # the edge of the command line, as server.clock is the server's

    def settings(self) -> Settings:
        """This user's settings."""
        from riseml.settings import read_settings

        return read_settings(self.environ)

    def connect(self) -> Client:
        """A client of the server, which is started when it has to be."""
        from riseml.cli.local import connect

        return connect(self.settings(), self.environ, self.render)

    def connect_to_run(self) -> Client:
        """The same for a command that is about to run something: with the executor that is asked for."""
        from riseml.cli.local import use_executor

        client = self.connect()
        try:
            use_executor(client, self.settings(), self.render)
        except BaseException:
            client.close()
            raise
        return client


def last_experiment(tools: Tools, client: Client) -> wire.ExperimentView:
    """The last experiment of the project in this folder.

    Raises:
        NotFound: there is no project, or it has no experiment.
    """
    from riseml.project.folder import find_project

    try:
        name = _read_name(find_project(tools.folder))
    except NotFound as error:
        raise NotFound(
            f"no ID was given, and {error.message}", "give an ID (`riseml status -a` lists yours), or go to a project"
        ) from None
    found = client.experiments(ended=True, project=name, limit=1)
    if not found:
        raise NotFound(f"project {name} has no experiment yet", "`riseml train` starts one")
    return found[-1]


def _read_name(project: Project) -> str:
    """The project's name.

    Raises:
        UsageError: the file does not say it.
    """
    from riseml.project.folder import find_project_name, read_config

    config = read_config(project)
    if name := find_project_name(config):
        return name
    from riseml.spec.config.loader import Overrides, check_config

    spec = check_config(config, str(project.file), Overrides()).spec
    if spec is None:
        raise UsageError(f"{project.file} does not say `project: NAME`", "see what is wrong with `riseml validate`")
    return spec.project


def choose(tools: Tools, client: Client, identity: str | None) -> str:
    """The ID that was given, checked; without one that of the project's last experiment."""
    from riseml.names import parse_id

    return last_experiment(tools, client)["id"] if identity is None else str(parse_id(identity))


def read_since(text: str, now: datetime) -> str:
    """`10m`, `2h`, `3d`, or a moment in RFC 3339, as a moment in RFC 3339 (UTC).

    Raises:
        UsageError: it is neither.
    """
    from datetime import timedelta

    try:
        if found := re.fullmatch(r"(\d{1,9})\s*([smhd])", text.strip(), re.ASCII):
            unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]
            moment = now - timedelta(seconds=int(found[1]) * unit)
        else:
            moment = datetime.fromisoformat(text.strip())
        return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"  # without a zone it is a local time
    except OverflowError:
        raise UsageError(f"--since {text!r} is beyond the calendar", "leave it out to begin at the beginning") from None
    except ValueError:
        raise UsageError(
            f"--since {text!r} is no time", "give an age such as 10m or 2h, or a moment: 2026-08-31T07:23:46Z"
        ) from None


def read_pairs(values: list[str], option: str) -> list[tuple[str, str]]:
    """`name=value` texts as pairs; a value may hold further `=`.

    Raises:
        UsageError: one of them has no `=`.
    """
    pairs: list[tuple[str, str]] = []
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                f"{option} {value!r} is no pair", f"write {option} {'path' if option == '--set' else 'name'}=value"
            )
        pairs.append((name.strip(), text))
    return pairs
