"""The commands of `riseml`, and the module of each. One call imports the module of its own command alone.

Importing every command, and letting typer inspect its parameters, takes longer than the rest of `riseml --help`.
So the list of all commands is made of the summaries here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from importlib import import_module
from typing import Any

import typer

from riseml.base.records import dataclass
from riseml.cli.help_text import HelpCommand, HelpGroup


class Section(Enum):
    """A heading of the list of all commands, in the order of that list."""

    RUN = "Run"
    LOOK = "Look"
    RESULTS = "Results"
    FILES = "Files"
    HANDS_ON = "Hands on"
    TEAM = "Team"
    POOL = "Pool"
    SERVER = "Server"
    HELP = "Help"


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """Where a command, or a group of commands, is defined below `riseml.cli.commands`, and what the help says of it."""

    name: str  # as the user types it
    module: str
    attribute: str
    section: Section
    summary: str  # for the list of all commands: the first sentences of its own help
    examples: tuple[str, ...]  # whole command lines, for the end of its own help
    more: tuple[str, ...] = ()  # further modules that add commands to a group
    takes_options: bool = True  # False: options after the first argument belong to the user's own command


_COMMANDS = (
    CommandPlace(
        "init",
        "config_file",
        "init_project",
        Section.RUN,
        "Write a riseml.yml that fits the project, or a commented one that runs at once.",
        ("riseml init", "riseml init --framework pytorch"),
    ),
    CommandPlace(
        "validate",
        "config_file",
        "validate_config",
        Section.RUN,
        "Check riseml.yml and show every problem with its line.",
        ("riseml validate",),
    ),
    CommandPlace(
        "train",
        "train",
        "train_project",
        Section.RUN,
        "Run the project: sync, build, start, and follow its log.",
        ("riseml train", "riseml train -d -p lr=0.1 --set train.resources.gpus=2", "riseml train 144 --trials 20"),
    ),
    CommandPlace(
        "rerun",
        "rerun",
        "rerun_experiment",
        Section.RUN,
        "Run an experiment again: the same code, environment and data.",
        ("riseml rerun 4", "riseml rerun 4 -p lr=0.1"),
    ),
    CommandPlace(
        "kill",
        "experiments",
        "kill_experiments",
        Section.RUN,
        "End experiments with all their jobs.",
        ("riseml kill 4", "riseml kill 144.2 144.3"),
    ),
    CommandPlace(
        "search",
        "search",
        "change_search",
        Section.RUN,
        "Pause, resume or stop a set, or change its concurrency.",
        ("riseml search 144 --concurrency 8",),
    ),
    CommandPlace(
        "mcp",
        "mcp",
        "serve_agent",
        Section.RUN,
        "Let a coding agent plan, run and read experiments.",
        ("riseml mcp", "riseml mcp --experiments 10 --gpu-hours 8"),
    ),
    CommandPlace(
        "import",
        "import_config",
        "import_config",
        Section.RUN,
        "Write a riseml.yml from a job of Kubeflow or a compose file.",
        ("riseml import tfjob.yaml",),
    ),
    CommandPlace(
        "export",
        "export",
        "export_run",
        Section.RUN,
        "Write files that run the same experiment without riseml.",
        ("riseml export 4 --compose",),
    ),
    CommandPlace(
        "docs",
        "docs",
        "show_docs",
        Section.HELP,
        "Show a page of the docs that riseml brings, or list them.",
        ("riseml docs", "riseml docs search", "riseml docs riseml-yml --open"),
    ),
    CommandPlace(
        "status",
        "experiments",
        "show_status",
        Section.LOOK,
        "List running experiments, or show one with its jobs.",
        ("riseml status", "riseml status -a -n 20", "riseml status 4"),
    ),
    CommandPlace(
        "show",
        "experiments",
        "show_experiment",
        Section.LOOK,
        "Show one experiment: its jobs, its capsule or its saved files.",
        ("riseml show 4", "riseml show 4 --capsule"),
    ),
    CommandPlace(
        "logs",
        "experiments",
        "print_logs",
        Section.LOOK,
        "Print the log of an experiment or of some jobs; follow it.",
        ("riseml logs 4", "riseml logs 4.worker.1 --tail 50"),
    ),
    CommandPlace(
        "monitor",
        "experiments",
        "monitor_experiment",
        Section.LOOK,
        "Show what jobs use, and what they asked for, every 2 s.",
        ("riseml monitor", "riseml monitor 4 --since 2h"),
    ),
    CommandPlace(
        "explain",
        "explain",
        "explain_experiment",
        Section.LOOK,
        "Say why an experiment waits, or where its jobs are and why.",
        ("riseml explain 4",),
    ),
    CommandPlace(
        "diagnose",
        "diagnose",
        "diagnose_experiment",
        Section.LOOK,
        "Say why an experiment is stuck: which rank, where, and why.",
        ("riseml diagnose 4", "riseml diagnose 4 --last"),
    ),
    CommandPlace(
        "tfconfig",
        "tfconfig",
        "print_tf_config",
        Section.LOOK,
        "Print the TF_CONFIG of each job, or of one job.",
        ("riseml tfconfig 4.worker.1",),
    ),
    CommandPlace(
        "env",
        "env",
        "print_environment",
        Section.LOOK,
        "Print the variables that riseml sets in jobs, or in one job.",
        ("riseml env 4.worker.1",),
    ),
    CommandPlace(
        "web",
        "web",
        "open_web_page",
        Section.LOOK,
        "Show your experiments in a browser.",
        ("riseml web --open",),
    ),
    CommandPlace(
        "results",
        "results",
        "show_results",
        Section.RESULTS,
        "Show results of experiments in a table, the best one marked.",
        ("riseml results 144", "riseml results --where 'lr<0.1' --sort -accuracy -n 10", "riseml results 144 --csv"),
    ),
    CommandPlace(
        "plot",
        "plot",
        "plot_metric",
        Section.RESULTS,
        "Plot a metric of an experiment, or of the experiments of a set.",
        ("riseml plot 4 loss", "riseml plot 144 accuracy --against lr"),
    ),
    CommandPlace(
        "compare",
        "compare",
        "compare_experiments",
        Section.RESULTS,
        "Show what differs: parameters, riseml.yml, code and metrics.",
        ("riseml compare 4 7",),
    ),
    CommandPlace(
        "tensorboard",
        "tensorboard",
        "open_tensorboard",
        Section.RESULTS,
        "Open experiments in a TensorBoard at 127.0.0.1.",
        ("riseml tensorboard 4 7 --open",),
    ),
    CommandPlace(
        "checkout",
        "checkout",
        "check_out_code",
        Section.RESULTS,
        "Write the project's files of an experiment into a folder.",
        ("riseml checkout 4 ../as-it-was",),
    ),
    CommandPlace(
        "tag",
        "annotations",
        "tag_experiments",
        Section.RESULTS,
        "Give tags to experiments, or take them back.",
        ("riseml tag 4 baseline", "riseml tag 4 baseline --remove"),
    ),
    CommandPlace(
        "note",
        "annotations",
        "note_experiments",
        Section.RESULTS,
        "Write the note of experiments: Markdown, kept as it is written.",
        ('riseml note 4 "warm-up of 5 epochs"',),
    ),
    CommandPlace(
        "star",
        "annotations",
        "star_experiments",
        Section.RESULTS,
        "Star experiments, so that `--where star` and the page show them.",
        ("riseml star 4",),
    ),
    CommandPlace(
        "rename",
        "annotations",
        "rename_experiment",
        Section.RESULTS,
        "Give an experiment or a set a name.",
        ("riseml rename 4 baseline",),
    ),
    CommandPlace(
        "archive",
        "annotations",
        "archive_experiments",
        Section.RESULTS,
        "Leave experiments that have ended out of lists. Nothing of them is removed.",
        ("riseml archive 4 5",),
    ),
    CommandPlace(
        "ls",
        "files",
        "list_paths",
        Section.FILES,
        "List files of data://, output:// and of this machine.",
        ("riseml ls -l output://4",),
    ),
    CommandPlace(
        "cat",
        "files",
        "print_file",
        Section.FILES,
        "Print files of data://, output:// or of this machine.",
        ("riseml cat output://4/metrics.json",),
    ),
    CommandPlace(
        "cp",
        "copying",
        "copy_files",
        Section.FILES,
        "Copy files between this machine, data://, output:// and jobs.",
        ("riseml cp output://4/model .", "riseml cp ./mnist data://", "riseml cp 4.master:/output/x ."),
    ),
    CommandPlace(
        "du",
        "files",
        "measure_paths",
        Section.FILES,
        "Show how many bytes and files are below a path.",
        ("riseml du output://4",),
    ),
    CommandPlace(
        "rm",
        "files",
        "remove_paths",
        Section.FILES,
        "Remove files of data:// or of an ended experiment's output.",
        ("riseml rm -r 'output://4/ckpt-1*' --dry-run",),
    ),
    CommandPlace(
        "keep",
        "output_cleaning",
        "keep_outputs",
        Section.FILES,
        "Keep outputs: `riseml system clean` and `rm` leave them alone.",
        ("riseml keep 4", "riseml keep --no 4"),
    ),
    CommandPlace(
        "media",
        "media",
        "show_media",
        Section.FILES,
        "List pictures, sound, videos, texts and tables of an experiment.",
        ("riseml media 4",),
    ),
    CommandPlace(
        "save",
        "saving",
        "save_output",
        Section.FILES,
        "Copy the output of an experiment into its store now.",
        ("riseml save 4",),
    ),
    CommandPlace(
        "stacks",
        "stacks",
        "print_stacks",
        Section.HANDS_ON,
        "Say in which line of code every running job is now.",
        ("riseml stacks 4", "riseml stacks 4.worker.1 --native", "riseml stacks 4 --locals"),
    ),
    CommandPlace(
        "profile",
        "profile",
        "profile_job",
        Section.HANDS_ON,
        "Record where a running job spends its time.",
        ("riseml profile 4.worker.1 --seconds 30", "riseml profile 4.worker.1 --native --idle"),
    ),
    CommandPlace(
        "exec",
        "jobs",
        "run_command",
        Section.HANDS_ON,
        "Run a command in a running job.",
        ("riseml exec 4.worker.1 -- nvidia-smi",),
        takes_options=False,
    ),
    CommandPlace(
        "shell",
        "jobs",
        "open_shell",
        Section.HANDS_ON,
        "Open a shell in a running job, on your terminal.",
        ("riseml shell 4.worker.1",),
    ),
    CommandPlace(
        "forward",
        "forward",
        "forward_port",
        Section.HANDS_ON,
        "Reach a port of a running job at 127.0.0.1.",
        ("riseml forward 4.worker.1 9999:8888",),
    ),
    CommandPlace(
        "notebook",
        "notebook",
        "open_notebook",
        Section.HANDS_ON,
        "Run JupyterLab with the project's environment, code and data.",
        ("riseml notebook --gpus 1 --open",),
    ),
    CommandPlace(
        "login",
        "login",
        "log_in",
        Section.TEAM,
        "Log in to a team's server: compare its fingerprint once, and give a key.",
        ("riseml login https://gpu1:8443", "riseml login https://gpu1:8443 --key-file key --fingerprint SHA256:..."),
    ),
    CommandPlace(
        "logout",
        "login",
        "log_out",
        Section.TEAM,
        "Forget the key of a server. Its pinned certificate stays.",
        ("riseml logout",),
    ),
    CommandPlace(
        "whoami",
        "user",
        "print_caller",
        Section.TEAM,
        "Show who you are for the server, and what you may do.",
        ("riseml whoami",),
    ),
    CommandPlace(
        "usage",
        "usage",
        "print_usage",
        Section.TEAM,
        "Print the GPU hours and core hours that experiments used.",
        ("riseml usage --since 30d", "riseml usage --by project --csv"),
    ),
    CommandPlace(
        "completion",
        "completion",
        "print_completion",
        Section.SERVER,
        "Print the script that completes riseml in bash, zsh or fish.",
        ("riseml completion bash",),
    ),
)
_GROUPS = (
    CommandPlace(
        "report",
        "report",
        "report_app",
        Section.RESULTS,
        "Write pages of Markdown with live charts and tables of runs; export them.",
        ("riseml report create lr-sweep report.md", "riseml report export lr-sweep"),
    ),
    CommandPlace(
        "quota",
        "quota",
        "quota_app",
        Section.TEAM,
        "Show what you may use and what you use; an admin sets quotas.",
        ("riseml quota", "riseml quota set --user paul --gpus 4"),
    ),
    CommandPlace(
        "pool",
        "pool",
        "pool_app",
        Section.POOL,
        "Show the hosts of the pool; add, remove and check them.",
        ("riseml pool", "riseml pool add gpu1 ssh://me@gpu1"),
        more=("pool_changes",),
    ),
    CommandPlace(
        "system",
        "system",
        "system_app",
        Section.POOL,
        "Show and test the hosts; remove what is left over there.",
        ("riseml system info", "riseml system test"),
    ),
    CommandPlace(
        "context",
        "login",
        "context_app",
        Section.TEAM,
        "Show the servers that you have logged in to, and choose one.",
        ("riseml context", "riseml context use gpu1"),
    ),
    CommandPlace(
        "audit",
        "audit",
        "audit_app",
        Section.TEAM,
        "Show what users of a team's server have changed; check its log of that.",
        ("riseml audit --since 7d --user paul", "riseml audit verify"),
    ),
    CommandPlace(
        "user",
        "user",
        "user_app",
        Section.TEAM,
        "Make, change and show the users of a team's server.",
        ("riseml user create paul --uid 2001", "riseml user list"),
    ),
    CommandPlace(
        "key",
        "key",
        "key_app",
        Section.TEAM,
        "Make, list and revoke the API keys of a team's server.",
        ("riseml key create --name laptop", "riseml key list"),
    ),
    CommandPlace(
        "session",
        "session",
        "session_app",
        Section.TEAM,
        "List the browsers and commands that are logged in, and end their sessions.",
        ("riseml session list", "riseml session revoke 5f0c1a2b3d4e5f60"),
    ),
    CommandPlace(
        "project",
        "project",
        "project_app",
        Section.TEAM,
        "Make, show and change the projects that users share.",
        ("riseml project create vision", "riseml project add vision paul"),
    ),
    CommandPlace(
        "server",
        "server",
        "server_app",
        Section.SERVER,
        "Start, stop or show your own server; back up or move its home.",
        ("riseml server status", "riseml server logs --tail 50"),
        more=("server_team",),
    ),
    CommandPlace(
        "secret",
        "secret",
        "secret_app",
        Section.SERVER,
        "Set the secrets that riseml.yml names; their values are never shown.",
        ("riseml secret set hf", "riseml secret list"),
    ),
    CommandPlace(
        "registry",
        "registry",
        "registry_app",
        Section.SERVER,
        "Log in at registries from which the images of experiments are pulled.",
        ("riseml registry login registry.lab:5000 -u paul", "riseml registry list"),
    ),
    CommandPlace(
        "self",
        "self_check",
        "self_app",
        Section.HELP,
        "Check riseml itself, and this machine.",
        ("riseml self check",),
    ),
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
        return
    verb = words[0] if words else ""
    names = list_names() - {_NEEDS_ALL}
    for place in _choose(_COMMANDS, verb, names):
        settings = None if place.takes_options else {"allow_interspersed_args": False}
        add = app.command(place.name, cls=HelpCommand, context_settings=settings, epilog="\n".join(place.examples))
        add(_load_module(place))
    for place in _choose(_GROUPS, verb, names):
        for module in place.more:
            import_module(f"riseml.cli.commands.{module}")
        app.add_typer(_load_module(place), name=place.name, cls=HelpGroup, epilog="\n".join(place.examples))


def list_names() -> set[str]:
    """Return the names of all commands and groups."""
    return {place.name for place in (*_COMMANDS, *_GROUPS)}


def is_group(name: str) -> bool:
    """Return whether a name is that of a group of commands."""
    return any(place.name == name for place in _GROUPS)


def list_sections() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each heading of the list of all commands, with the names and summaries below it."""
    for section in Section:
        places = [place for place in (*_GROUPS, *_COMMANDS) if place.section is section]
        yield section.value, [(place.name, place.summary) for place in places]


def _choose(places: Iterable[CommandPlace], verb: str, names: set[str]) -> list[CommandPlace]:
    return [place for place in places if verb not in names or place.name == verb]


def _load_module(place: CommandPlace) -> Any:
    return getattr(import_module(f"riseml.cli.commands.{place.module}"), place.attribute)
