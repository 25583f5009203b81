"""The commands of `riseml`, and the module of each. One call imports the module of its own command alone.

To import every command, and to let typer look at its parameters, takes about 15 ms of the 100 that a short command has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """Where a command, or a group of commands, is defined below `riseml.cli.commands`."""

    name: str  # as the user types it
    module: str
    attribute: str
    more: tuple[str, ...] = ()  # further modules that add commands to a group
    takes_options: bool = True  # False: options after the first argument belong to the user's own command


_COMMANDS = (
    CommandPlace("init", "config_file", "init_project"),
    CommandPlace("validate", "config_file", "validate_config"),
    CommandPlace("train", "train", "train_project"),
    CommandPlace("status", "experiments", "show_status"),
    CommandPlace("logs", "experiments", "print_logs"),
    CommandPlace("monitor", "experiments", "monitor_experiment"),
    CommandPlace("kill", "experiments", "kill_experiments"),
    CommandPlace("exec", "jobs", "run_command", takes_options=False),
    CommandPlace("shell", "jobs", "open_shell"),
    CommandPlace("forward", "forward", "forward_port"),
    CommandPlace("cp", "copying", "copy_files"),
    CommandPlace("ls", "files", "list_paths"),
    CommandPlace("cat", "files", "print_file"),
    CommandPlace("du", "files", "measure_paths"),
    CommandPlace("rm", "files", "remove_paths"),
    CommandPlace("keep", "output_cleaning", "keep_outputs"),
    CommandPlace("tensorboard", "tensorboard", "open_tensorboard"),
    CommandPlace("notebook", "notebook", "open_notebook"),
    CommandPlace("results", "results", "show_results"),
    CommandPlace("plot", "plot", "plot_metric"),
    CommandPlace("compare", "compare", "compare_experiments"),
    CommandPlace("rerun", "rerun", "rerun_experiment"),
    CommandPlace("checkout", "checkout", "check_out_code"),
    CommandPlace("export", "export", "export_run"),
    CommandPlace("import", "import_config", "import_config"),
    CommandPlace("explain", "explain", "explain_experiment"),
    CommandPlace("tfconfig", "tfconfig", "print_tf_config"),
    CommandPlace("env", "env", "print_environment"),
    CommandPlace("completion", "completion", "print_completion"),
)
_GROUPS = (
    CommandPlace("pool", "pool", "pool_app", more=("pool_changes",)),
    CommandPlace("server", "server", "server_app"),
    CommandPlace("system", "system", "system_app"),
)
_NEEDS_ALL = "completion"  # it lists the others


def add_commands(app: typer.Typer, words: Sequence[str]) -> None:
    """Add the command that a command line names; all of them when it names none, or one that does not exist.

    Args:
        app: gets the commands.
        words: the command line, without `riseml`.
    """
    verb = words[0] if words else ""
    known = {place.name for place in (*_COMMANDS, *_GROUPS)} - {_NEEDS_ALL}
    for place in _choose(_COMMANDS, verb, known):
        settings = None if place.takes_options else {"allow_interspersed_args": False}
        app.command(place.name, context_settings=settings)(_load(place))
    for place in _choose(_GROUPS, verb, known):
        for module in place.more:
            import_module(f"riseml.cli.commands.{module}")
        app.add_typer(_load(place), name=place.name)


def _choose(places: Iterable[CommandPlace], verb: str, known: set[str]) -> list[CommandPlace]:
    return [place for place in places if verb not in known or place.name == verb]


def _load(place: CommandPlace) -> Any:
    return getattr(import_module(f"riseml.cli.commands.{place.module}"), place.attribute)
