"""`completion`: the script with which a shell completes commands, options, IDs and files."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from riseml.cli.commands.options import JsonOption
from riseml.cli.output.completion_scripts import CompletedCommand, write_script

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext

_OF_RUNNING = frozenset({"kill", "monitor", "exec", "shell", "forward", "cp", "notebook"})
_IDS = ("ID", "JOB")  # metavars of arguments that are IDs
_JOB_PATHS = frozenset({"cp"})  # commands whose paths may begin with the ID of a job
_PATHS = ("PATH", "SOURCE", "CAPSULE", "FILE")  # metavars of arguments and values that may be paths


class ShellChoice(Enum):
    """The shells that riseml knows."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def print_completion(
    context: typer.Context,
    shell: Annotated[ShellChoice, typer.Argument(help="Your shell.")],
    *,
    json: JsonOption = False,
) -> None:
    """Print the script that completes riseml in bash, zsh or fish.

    The shell then completes commands, options, IDs and files.
    Put `eval "$(riseml completion bash)"` into ~/.bashrc, the same with zsh behind `compinit` into ~/.zshrc, or
    `riseml completion fish | source` into ~/.config/fish/config.fish.
    """
    command: CommandContext = context.obj
    script: wire.CompletionScript = {
        "shell": shell.value,
        "script": write_script(shell.value, list(_list_commands(context.find_root().command, ""))),
    }
    if json:
        command.printer.print_json(script)
    else:
        command.printer.print_lines(script["script"].splitlines())


def _list_commands(command: Any, path: str) -> Iterator[CompletedCommand]:
    """Yield a command and all below it. `command` belongs to typer's parser, which has no types."""
    below: dict[str, Any] = getattr(command, "commands", {})
    visible = {name: child for name, child in below.items() if not child.hidden}
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    takes_id = path in _JOB_PATHS or any(word in (argument.metavar or "") for argument in arguments for word in _IDS)
    choices = next(
        (
            tuple(map(_name_choice, argument.type.choices))
            for argument in arguments
            if hasattr(argument.type, "choices")
        ),
        (),
    )
    yield CompletedCommand(
        path,
        (*visible, *choices),
        (*(name for option in options for name in (*option.opts, *option.secondary_opts)), "-h", "--help"),
        ("running" if path in _OF_RUNNING else "all") if takes_id else "",
        {
            name: tuple(map(_name_choice, getattr(option.type, "choices", ())))
            for option in options
            if not option.is_flag and (hasattr(option.type, "choices") or _may_be_path(option))
            for name in option.opts
        },
        any(map(_may_be_path, arguments)),
    )
    for name, child in visible.items():
        yield from _list_commands(child, f"{path} {name}".strip())


def _may_be_path(parameter: Any) -> bool:
    """Return whether an argument, or the value of an option, may be a path of this machine."""
    words = parameter.metavar or ""
    return getattr(parameter.type, "name", "") in ("path", "file", "directory") or any(word in words for word in _PATHS)


def _name_choice(choice: object) -> str:
    return str(choice.value if isinstance(choice, Enum) else choice)
