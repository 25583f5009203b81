"""The commands of `riseml`, and the module of each. One call imports the module of its own command alone.

Importing every command, and letting typer inspect its parameters, takes longer than the rest of `riseml --help`.
So the list of all commands is made of the summaries here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import typer

from riseml.base.records import dataclass


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """Where a command, or a group of commands, is defined below `riseml.cli.commands`."""

    name: str  # as the user types it
    module: str
    attribute: str
    summary: str  # for the list of all commands: the first sentences of its own help
    more: tuple[str, ...] = ()  # further modules that add commands to a group
    takes_options: bool = True  # False: options after the first argument belong to the user's own command


_COMMANDS = (
    CommandPlace("init", "config_file", "init_project", "Write a commented riseml.yml that runs at once."),
    CommandPlace(
        "validate",
        "config_file",
        "validate_config",
        "Check riseml.yml and show every problem with its line. Needs no server.",
    ),
    CommandPlace(
        "train",
        "train",
        "train_project",
        "Run the project: sync, build, start, and follow its log. With an ID and --trials: add trials to that set.",
    ),
    CommandPlace("status", "experiments", "show_status", "List running experiments, or show one with its jobs."),
    CommandPlace(
        "show",
        "experiments",
        "show_experiment",
        "Show one experiment with its jobs, or what is needed to run it again, or what of it is saved in a store.",
    ),
    CommandPlace("logs", "experiments", "print_logs", "Print the log of an experiment or of some jobs; follow it."),
    CommandPlace(
        "monitor", "experiments", "monitor_experiment", "Show what jobs use, and what they asked for, every 2 s."
    ),
    CommandPlace("kill", "experiments", "kill_experiments", "End experiments with all their jobs."),
    CommandPlace(
        "search",
        "search",
        "change_search",
        "Pause, resume or stop a set that goes on, or change how many of its experiments run at the same time.",
    ),
    CommandPlace("exec", "jobs", "run_command", "Run a command in a running job.", takes_options=False),
    CommandPlace("shell", "jobs", "open_shell", "Open a shell in a running job, on your terminal."),
    CommandPlace("forward", "forward", "forward_port", "Reach a port of a running job at 127.0.0.1."),
    CommandPlace(
        "cp",
        "copying",
        "copy_files",
        "Copy files and folders out of data:// and output://4, or into them; or out of a running job, or into one.",
    ),
    CommandPlace("ls", "files", "list_paths", "List files of data://, output:// and of this machine."),
    CommandPlace("cat", "files", "print_file", "Print files of data://, output:// or of this machine."),
    CommandPlace("du", "files", "measure_paths", "Show how many bytes and files are below a path."),
    CommandPlace(
        "rm", "files", "remove_paths", "Remove files of data:// or of the output of an experiment that has ended."
    ),
    CommandPlace(
        "keep",
        "output_cleaning",
        "keep_outputs",
        "Keep the outputs of experiments: `riseml system clean` and `riseml rm` leave them alone.",
    ),
    CommandPlace(
        "save",
        "saving",
        "save_output",
        "Copy the output of an experiment into the store that `train.save` names, now.",
    ),
    CommandPlace(
        "tensorboard",
        "tensorboard",
        "open_tensorboard",
        "Open experiments in a TensorBoard at 127.0.0.1: running ones, ended ones, sets, several together.",
    ),
    CommandPlace(
        "notebook",
        "notebook",
        "open_notebook",
        "Run JupyterLab with the project's environment, code and data, and open it at 127.0.0.1.",
    ),
    CommandPlace(
        "results",
        "results",
        "show_results",
        "Show results: parameters, metrics, state, time and host of experiments, the best one marked.",
    ),
    CommandPlace(
        "plot", "plot", "plot_metric", "Plot the curve of a metric of an experiment, or of the experiments of a set."
    ),
    CommandPlace(
        "compare",
        "compare",
        "compare_experiments",
        "Show what differs between experiments: parameters, riseml.yml, code, environment and metrics.",
    ),
    CommandPlace(
        "rerun", "rerun", "rerun_experiment", "Run an experiment again: the same code, environment and data as then."
    ),
    CommandPlace(
        "checkout",
        "checkout",
        "check_out_code",
        "Write the project's files of an experiment into a folder, as they were when it was submitted.",
    ),
    CommandPlace("export", "export", "export_run", "Write files that run the same experiment without riseml."),
    CommandPlace(
        "import", "import_config", "import_config", "Write a riseml.yml from a job of Kubeflow or a compose file."
    ),
    CommandPlace("web", "web", "open_web_page", "Show your experiments in a browser."),
    CommandPlace(
        "explain",
        "explain",
        "explain_experiment",
        "Say why an experiment waits, or where its jobs are and why; of a set, what runs, what waits, and what"
        " follows.",
    ),
    CommandPlace("tfconfig", "tfconfig", "print_tf_config", "Print the TF_CONFIG of each job, or of one job."),
    CommandPlace("env", "env", "print_environment", "Print the variables that riseml sets in each job, or in one job."),
    CommandPlace(
        "completion",
        "completion",
        "print_completion",
        "Print the script with which a shell completes commands, options, IDs and files.",
    ),
)
_GROUPS = (
    CommandPlace(
        "pool", "pool", "pool_app", "Show the hosts of the pool; add, remove and check them.", more=("pool_changes",)
    ),
    CommandPlace(
        "server",
        "server",
        "server_app",
        "Start, stop or show your own server; back up and move its home, and replace its key.",
    ),
    CommandPlace("system", "system", "system_app", "Show and test the hosts; remove what is left over there."),
)
_HELP = (["--help"], ["-h"])  # the list of all commands needs none of their modules
_NEEDS_ALL = "completion"  # this command lists the others


def add_commands(app: typer.Typer, words: Sequence[str]) -> None:
    """Add the command that a command line names; all of them when it names none, or one that does not exist.

    Args:
        app: gets the commands.
        words: the command line, without `riseml`.
    """
    if list(words) in _HELP:
        for place in (*_COMMANDS, *_GROUPS):
            app.command(place.name, help=place.summary)(_do_nothing)
        return
    verb = words[0] if words else ""
    names = {place.name for place in (*_COMMANDS, *_GROUPS)} - {_NEEDS_ALL}
    for place in _choose(_COMMANDS, verb, names):
        settings = None if place.takes_options else {"allow_interspersed_args": False}
        app.command(place.name, context_settings=settings)(_load_module(place))
    for place in _choose(_GROUPS, verb, names):
        for module in place.more:
            import_module(f"riseml.cli.commands.{module}")
        app.add_typer(_load_module(place), name=place.name)


def _do_nothing() -> None:
    """Do nothing: a placeholder for a command in the list of all commands."""


def _choose(places: Iterable[CommandPlace], verb: str, names: set[str]) -> list[CommandPlace]:
    return [place for place in places if verb not in names or place.name == verb]


def _load_module(place: CommandPlace) -> Any:
    return getattr(import_module(f"riseml.cli.commands.{place.module}"), place.attribute)
