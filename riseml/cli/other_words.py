"""Read first words that are no command of riseml: `help`, and what other tools call its commands.

A word whose meaning is safe becomes the command: `ps` is `status`. A word that could mean several commands, or one that
removes something, gets an answer with the right commands. Pure; `main` imports this module for such words alone, and
completion does not offer them.
"""

from __future__ import annotations

from collections.abc import Sequence

from riseml.base.errors import UsageError
from riseml.cli.command_table import is_group, list_names

_HELP_OPTIONS = ("-h", "--help")
_VERSION = frozenset({"version", "-v", "-V"})

_SAME = {
    "ps": "status",  # docker, dstack
    "list": "status",  # helm, torchx
    "ls-runs": "status",
    "queue": "status",  # sky
    "run": "train",  # docker, torchx, mlflow
    "submit": "train",  # ray, gcloud
    "describe": "show",  # kubectl
    "inspect": "show",  # docker
    "top": "monitor",
    "log": "logs",
    "stop": "kill",  # docker, dstack
    "cancel": "kill",  # sky, ray
}
_ENDING = frozenset({"stop", "cancel"})
"""Words that end what the user names; without a name they could mean the server or a search."""

_STARTING = frozenset({"run", "submit"})
"""Words behind which users of other tools write a file or a command."""

_ANSWERS = {
    "apply": "`riseml train` runs the project",
    "artifacts": "`riseml ls output://4` lists the output of experiment 4, and `riseml cp output://4/x .` copies it",
    "attach": "`riseml logs 4` follows its log, and `riseml shell 4` opens a shell in it",
    "dashboard": "`riseml web` shows your experiments in a browser",
    "delete": "`riseml kill 4` ends experiment 4, and `riseml rm -r output://4` removes its output",
    "destroy": "`riseml kill 4` ends experiment 4, and `riseml rm -r output://4` removes its output",
    "doctor": "`riseml self check` checks this machine, and `riseml system test` and `riseml pool check` the hosts",
    "down": "`riseml kill 4` ends experiment 4, and `riseml server stop` stops your server while training goes on",
    "download": "`riseml cp output://4/model .` copies from the output of experiment 4",
    "events": "`riseml server logs` prints what the server decides and does",
    "experiments": "`riseml status -a` lists all experiments",
    "get": "`riseml status` lists experiments, and `riseml pool` the hosts",
    "history": "`riseml status -a` lists all experiments",
    "hosts": "`riseml pool` shows the hosts",
    "jobs": "`riseml status` lists experiments, and `riseml status 4` the jobs of one",
    "jupyter": "`riseml notebook` runs JupyterLab",
    "launch": "`riseml train` runs the project",
    "lab": "`riseml notebook` runs JupyterLab",
    "metrics": "`riseml results 4` shows metrics, and `riseml plot 4 loss` draws a curve",
    "nodes": "`riseml pool` shows the hosts",
    "pause": "`riseml search 144 --pause` pauses a set",
    "port-forward": "`riseml forward 4 8888` reaches a port of a job",
    "pull": "`riseml cp output://4/model .` copies files to this machine",
    "push": "`riseml cp ./mnist data://` copies files into data",
    "remove": "`riseml kill 4` ends experiment 4, and `riseml rm -r output://4` removes its output",
    "restart": "`riseml rerun 4` runs experiment 4 again, and `riseml server stop` stops your server",
    "resume": "`riseml rerun 4` runs experiment 4 again, and `riseml search 144 --resume` goes on with a set",
    "retry": "`riseml rerun 4` runs experiment 4 again",
    "runs": "`riseml status -a` lists all experiments",
    "ssh": "`riseml shell 4` opens a shell in a job",
    "start": "`riseml train` runs the project, and `riseml server start` starts your server",
    "sweep": "`riseml train` runs a set where riseml.yml has `train.parameters`",
    "tail": "`riseml logs 4 -n 50` begins with the last 50 lines",
    "ui": "`riseml web` shows your experiments in a browser",
    "up": "`riseml train` runs the project, and `riseml server start` starts your server",
    "upload": "`riseml cp ./mnist data://` copies files into data",
}


def translate_words(words: Sequence[str]) -> list[str]:
    """Return the command line that riseml has for these words; the same words when it knows nothing better.

    Args:
        words: a command line without `riseml`, whose first word is no command.

    Raises:
        UsageError: riseml knows what the words mean, and has no single command line for them.

    Example:
        >>> translate_words(["help", "pool", "add"])
        ['pool', 'add', '--help']
        >>> translate_words(["ps", "-a"])
        ['status', '-a']
    """
    word, *arguments = words
    if word == "help":
        return _translate_help(arguments)
    if word in _VERSION:
        if arguments:
            raise UsageError(
                f"`riseml {word}` prints the version, and takes nothing else", f"leave {word} or the rest out"
            )
        return ["--version"]
    if not any(argument in _HELP_OPTIONS for argument in arguments):
        _check_arguments(word, arguments)
    return [_translate_name(word), *arguments]


def _check_arguments(word: str, arguments: Sequence[str]) -> None:
    """Raise UsageError where the same arguments have another meaning for the command of riseml."""
    if word in _ENDING and all(argument.startswith("-") for argument in arguments):
        raise UsageError(
            f"`riseml {word}` needs the ID of an experiment",
            f"write `riseml {word} 4`; `riseml server stop` stops your server, `riseml search 144 --stop` a search",
        )
    if word in _STARTING and arguments and not arguments[0].startswith("-") and "--trials" not in arguments:
        raise UsageError(
            f"`riseml {word}` runs what riseml.yml says, and takes neither a command nor a file: {arguments[0]!r}",
            "write the command as `run` in riseml.yml, or give another riseml.yml: `riseml train -f FILE`",
        )


def _translate_name(word: str) -> str:
    """Return the name of riseml's command for a word; the word itself when riseml does not know it.

    Raises:
        UsageError: several commands could be meant.
    """
    if word in _ANSWERS:
        raise UsageError(f"there is no command {word!r}", _ANSWERS[word])
    return _SAME.get(word, word)


def _translate_help(arguments: Sequence[str]) -> list[str]:
    names = [name for name in arguments if name not in _HELP_OPTIONS and name != "help"]
    for name in names:
        if name.startswith("-"):
            raise UsageError(f"`riseml help` takes the name of a command, not {name!r}", "write `riseml help train`")
    if names and names[0] not in list_names():
        names[0] = _translate_name(names[0])
    most = 2 if names and is_group(names[0]) else 1
    if len(names) > most:
        path = " ".join(names[:most])
        raise UsageError(f"{path} has no command {names[most]!r}", f"`riseml help {path}` explains what it has")
    return [*names, "--help"]
