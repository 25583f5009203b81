"""`init` and `validate`: what needs no server. `read_spec` is shared with `train`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.output import lines
from riseml.cli.output.text import plural
from riseml.cli.tools import Exit, Tools
from riseml.errors import Conflict, Refused, RisemlError, UsageError
from riseml.project.folder import CONFIG, Project, find_project, read_config

if TYPE_CHECKING:
    from riseml import wire
    from riseml.spec.config.loader import Overrides
    from riseml.spec.config.types import Spec
    from riseml.spec.yaml.problems import Problem


def _read_path(text: str) -> Path:
    if not text:
        raise typer.BadParameter("it is empty; give the path of a riseml.yml")  # a script's variable that is not set
    return Path(text)


FileOption = Annotated[
    Path | None,
    typer.Option("-f", "--file", metavar="FILE", parser=_read_path, help="Use FILE instead of riseml.yml."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, slots=True)
class Source:
    """A riseml.yml as it was read; `name` is how messages call it."""

    project: Project
    name: str
    text: str


def init(
    context: typer.Context,
    *,
    framework: Annotated[
        str | None,
        typer.Option("--framework", metavar="NAME", help="Start from this framework, for instance tensorflow."),
    ] = None,
    file: FileOption = None,
    json: JsonOption = False,
) -> None:
    """Write a commented riseml.yml for this folder. Never overwrites one."""
    from riseml.spec.config.templates import make_starter_config

    tools: Tools = context.obj
    path = tools.folder / (file or CONFIG)
    project = re.sub(r"[^A-Za-z0-9_-]+", "-", path.absolute().parent.name).strip("-") or "project"
    shown = str(file or CONFIG)
    text = make_starter_config(project, framework)
    try:
        with open(path, "x", encoding="utf-8") as target:
            target.write(text)
    except FileExistsError:
        raise Conflict(
            f"{shown} is already there", "edit it, or write another one with `riseml init -f FILE`"
        ) from None
    except OSError as error:
        raise Refused(f"cannot write {shown}: {error.strerror}", "check the folder and its permissions") from None
    if json:
        tools.render.json({"file": shown, "project": project})
    else:
        tools.render.print(f"Wrote {shown} for project {project}. Edit it, then start with `riseml train`.")


def validate(context: typer.Context, *, file: FileOption = None, json: JsonOption = False) -> None:
    """Check riseml.yml and show every problem with its line. Needs no server."""
    tools: Tools = context.obj
    source = read_source(tools, file)
    spec, problems = check_source(source)
    if json:
        tools.render.json([show_problem(problem) for problem in problems])
    else:
        tools.render.problems(problems, source.name, source.text)
    if spec is None:
        if not json:
            tools.render.say(f"{source.name} has {lines.count_problems(problems)}.")
        raise Exit(UsageError.exit_code)
    if not json:
        tools.render.notes(spec.notes)
        _warn_of_framework(tools, spec)
        tools.render.print(f"{source.name} is valid: {describe_spec(spec)}")


def read_source(tools: Tools, file: Path | None) -> Source:
    """The riseml.yml that is meant.

    Raises:
        NotFound: there is none.
        UsageError: it cannot be read.
    """
    project = find_project(tools.folder, file)
    name = os.path.relpath(project.file, tools.folder)
    return Source(project, name if len(name) < len(str(project.file)) else str(project.file), read_config(project))


def check_source(source: Source, overrides: Overrides | None = None) -> tuple[Spec | None, Sequence[Problem]]:
    """What it says and all its problems; None when it cannot be used."""
    from riseml.spec.config.loader import Overrides, check_config

    checked = check_config(source.text, source.name, overrides or Overrides())
    return checked.spec, checked.problems


def show_problem(problem: Problem) -> wire.ProblemShape:
    """A problem in its documented shape."""
    return {
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "path": problem.path,
        "problem": problem.problem,
        "hint": problem.hint,
        "severity": "error" if problem.severity.value == "error" else "warning",
    }


def describe_spec(spec: Spec) -> str:
    """`project ai-toaster, tensorflow, 4 jobs (master, worker.1, worker.2, ps.1), 8 experiments`."""
    parts = [f"project {spec.project}"]
    if spec.train.framework:
        parts.append(spec.train.framework)
    jobs = _job_names(spec)
    if jobs:
        parts.append(f"{plural(len(jobs), 'job')} ({_shorten(jobs)})")
    count = math.prod(len(parameter.values) for parameter in spec.train.parameters)
    if count > 1:
        parts.append(f"{count} experiments, {spec.train.concurrency} at the same time")
    return ", ".join(parts)


def _job_names(spec: Spec) -> list[str]:
    from riseml.frameworks.registry import choose_framework

    try:
        return [role.name for role in choose_framework(spec.train).roles(spec.train)]
    except RisemlError:
        return []  # a framework that only the server knows


def _warn_of_framework(tools: Tools, spec: Spec) -> None:
    from riseml.frameworks.registry import choose_framework

    try:
        choose_framework(spec.train)
    except RisemlError as error:
        tools.render.warn(f"{error.message}; {error.hint}")


def _shorten(names: list[str]) -> str:
    return ", ".join(names if len(names) <= 6 else [*names[:4], "...", names[-1]])
