"""`init` and `validate`: write and check a riseml.yml. Neither needs a server."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import RisemlError, UsageError
from riseml.cli.commands.options import FileOption, JsonOption
from riseml.cli.config_source import describe_spec, list_topologies
from riseml.cli.context import CommandContext, Exit
from riseml.cli.output.text import clean_text
from riseml.files.project.folder import RESERVED_NAME
from riseml.spec.yaml.problems import count_problems
from riseml.submission.config_source import ConfigSource, check_config_source, read_config_source

if TYPE_CHECKING:
    from riseml.spec.config.types import Spec


def init_project(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    example_name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default=False, help="With --example: which one.")
    ] = None,
    *,
    framework: Annotated[
        str | None,
        typer.Option(
            "--framework",
            metavar="NAME",
            help="Start from this framework: tensorflow, pytorch, jax, horovod, roles, or plain for none.",
        ),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option("-n", "--project-name", metavar="NAME", help="Of the project. Default: the name of the folder."),
    ] = None,
    script: Annotated[
        str | None,
        typer.Option("--script", metavar="FILE", help="Run this script or notebook of the project."),
    ] = None,
    convert: Annotated[
        bool, typer.Option("--convert", help="Rewrite a riseml.yml of RiseML 0.x or 1.x for this version.")
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Write the example NAME with its data; without NAME, list all of them.")
    ] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    file: FileOption = None,
    json: JsonOption = False,
) -> None:
    """Write a riseml.yml that fits the project, or a commented one that runs at once.

    The command reads scripts, notebooks, files of packages and a Dockerfile, and runs none of them. It never overwrites
    a file; --convert asks first, and keeps the earlier text in riseml.yml.old.
    """
    command: CommandContext = context.obj
    choices = {"--framework": framework, "--script": script, "--project-name": project}
    if example:
        _refuse_beside("--example", {**choices, "--convert": convert or None, "-f": file})
        from riseml.cli.commands.example_project import show_examples, write_example_project

        if example_name is None:
            show_examples(command, json=json)
        else:
            write_example_project(command, example_name, json=json)
        return
    if example_name is not None:
        raise UsageError(f"init takes no argument {example_name!r}", "with --example it is the name of an example")
    if convert:
        _refuse_beside("--convert", choices)
        from riseml.cli.commands.config_conversion import convert_config

        convert_config(command, file, yes=yes, json=json)
        return
    from riseml.cli.commands.new_config import NewConfigRequest, write_fitting_config

    name = None if project is None else _check_project_name(project)
    write_fitting_config(command, NewConfigRequest(file, name, framework, script, yes, json))


def _refuse_beside(option: str, values: Mapping[str, object]) -> None:
    """Refuse options that say nothing beside another one.

    Raises:
        UsageError: one of them is given.
    """
    wrong = next((name for name, value in values.items() if value is not None), None)
    if wrong is not None:
        raise UsageError(f"{option} takes no {wrong}: its files say what runs", f"leave {wrong} or {option} out")


def _check_project_name(name: str) -> str:
    """Return the project name that the user gave.

    Raises:
        UsageError: it is not a project name.
    """
    from riseml.spec.schema.contract import CONFIG_CONTRACT

    schema = CONFIG_CONTRACT.at(("project",))
    if len(name) <= schema["maxLength"] and re.fullmatch(schema["pattern"], name):
        return name
    hint = f"begin with a letter, a digit or _; use letters, digits, - and _, at most {schema['maxLength']}"
    raise UsageError(f"--project-name {name[:80]!r} is not a project name", hint)


def validate_config(context: typer.Context, *, file: FileOption = None, json: JsonOption = False) -> None:
    """Check riseml.yml and show every problem with its line.

    It needs no server.
    """
    command: CommandContext = context.obj
    source = read_config_source(command.folder, file)
    spec, problems = check_config_source(source)
    if json:
        command.printer.print_json([problem.to_fields() for problem in problems])
    else:
        command.printer.print_problems(problems, source.name, source.text)
    if spec is None:
        if not json:
            command.printer.say(f"{source.name} has {count_problems(problems)}.")
        raise Exit(UsageError.exit_code)
    _refuse_reserved_entry(command, source)
    if not json:
        command.printer.print_notes(spec.notes)
        _warn_of_framework(command, spec)
        lines = [f"{source.name} is valid: {describe_spec(spec)}", *list_topologies(spec)]
        command.printer.print_lines([clean_text(line) for line in lines])
        passed = [variable.name for variable in spec.train.env if variable.is_passed]
        if passed:
            command.printer.print_lines([f"It passes on from your environment: {', '.join(passed)}"])


def _refuse_reserved_entry(command: CommandContext, source: ConfigSource) -> None:
    """Refuse a project with an entry that has the name of riseml's own folder in a job, as `train` does.

    Raises:
        UsageError: it has one.
    """
    if not os.path.lexists(source.project.folder / RESERVED_NAME):
        return
    from riseml.files.project.listing import check_reserved_name
    from riseml.submission.project_sync import find_surroundings

    check_reserved_name(source.project.folder, find_surroundings(command))


def _warn_of_framework(command: CommandContext, spec: Spec) -> None:
    from riseml.frameworks.registry import choose_framework

    try:
        choose_framework(spec.train)
    except RisemlError as error:
        command.printer.warn(f"{error.message}; {error.hint}")
