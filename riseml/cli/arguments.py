"""Read what users type: the project's last experiment where they type no ID, times, pairs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from riseml.base.errors import NotFound, UsageError
from riseml.client.identities import find_identity

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client
    from riseml.files.project.folder import Project


def choose_experiment_id(context: CommandContext, client: Client, identity: str | None) -> str:
    """Return the ID that the user gave, also by a name or a tag, or the ID of the project's last experiment.

    Raises:
        UsageError: the text is not an ID, name or tag, or several experiments have it.
        NotFound: no ID was given, and there is no project or it has no experiment.
    """
    return find_last_experiment(context, client)["id"] if identity is None else find_identity(client, identity)


def find_last_experiment(context: CommandContext, client: Client) -> wire.ExperimentView:
    """Return the last experiment of the project in the working directory.

    Raises:
        NotFound: there is no project, or it has no experiment.
    """
    name = find_own_project(context)
    experiments = client.list_experiments(ended=True, project=name, limit=1, companions=False)
    if not experiments:
        raise NotFound(f"project {name} has no experiment yet", "`riseml train` starts one")
    return experiments[-1]


def find_own_project(context: CommandContext) -> str:
    """Return the name of the project in the working directory.

    Raises:
        NotFound: there is none.
    """
    from riseml.files.project.folder import find_project

    try:
        return _read_project_name(find_project(context.folder))
    except NotFound as error:
        raise NotFound(
            f"no ID was given, and {error.message}",
            "give an ID (`riseml status -a` lists yours), or go to a project's folder",
        ) from None


def _read_project_name(project: Project) -> str:
    from riseml.files.project.folder import find_project_name, read_config

    config = read_config(project)
    if name := find_project_name(config):
        return name
    from riseml.spec.config.loader import Overrides, check_config

    spec = check_config(config, str(project.file), Overrides()).spec
    if spec is None:
        raise UsageError(f"{project.file} does not say `project: NAME`", "`riseml validate` shows what is wrong")
    return spec.project


def parse_since(text: str, now: datetime) -> str:
    """Return `10m`, `2h`, `3d` or a moment in RFC 3339 as a moment in RFC 3339 (UTC).

    Raises:
        UsageError: the text is neither an age nor a moment.

    Example:
        >>> parse_since("10m", datetime(2026, 8, 31, 7, 30, tzinfo=UTC))
        '2026-08-31T07:20:00Z'
        >>> parse_since("0001-01-01T00:00:00Z", datetime(2026, 8, 31, 7, 30, tzinfo=UTC))
        '0001-01-01T00:00:00Z'
    """
    from datetime import timedelta

    try:
        if match := re.fullmatch(r"(\d{1,9})\s*([smhd])", text.strip(), re.ASCII):
            unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]
            moment = now - timedelta(seconds=int(match[1]) * unit)
        else:
            moment = datetime.fromisoformat(text.strip())
        moment = moment.astimezone(UTC)  # a moment without a zone is local time
        return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
    except OverflowError:
        raise UsageError(
            f"--since {text!r} is beyond the calendar", "without --since the log begins at its beginning"
        ) from None
    except ValueError:
        raise UsageError(
            f"--since {text!r} is not a time", "give an age such as 10m or 2h, or a moment: 2026-08-31T07:23:46Z"
        ) from None


def parse_pairs(values: list[str], option: str) -> list[tuple[str, str]]:
    """Return `name=value` texts as pairs; a value may contain further `=`.

    Raises:
        UsageError: a text has no `=`, or nothing before it.

    Example:
        >>> parse_pairs(["lr=0.1"], "-p")
        [('lr', '0.1')]
    """
    pairs: list[tuple[str, str]] = []
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            form = "path=value" if option == "--set" else "name=value"
            raise UsageError(f"{option} {value!r} is not a pair", f"write {option} {form}")
        pairs.append((name.strip(), text))
    return pairs
