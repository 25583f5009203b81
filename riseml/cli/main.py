"""The command `riseml`: its commands, and how their errors become messages and exit codes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from copy import copy
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from riseml import __version__
from riseml.cli.commands import config_file, experiments, jobs
from riseml.cli.commands.completion import print_completion
from riseml.cli.commands.copying import copy_files
from riseml.cli.commands.explain import explain_experiment
from riseml.cli.commands.forward import forward_port
from riseml.cli.commands.pool import pool_app
from riseml.cli.commands.pool_changes import add_host, remove_host
from riseml.cli.commands.server import server_app
from riseml.cli.commands.system import system_app
from riseml.cli.commands.tensorboard import open_tensorboard
from riseml.cli.commands.tfconfig import print_tf_config
from riseml.cli.commands.train import train_project
from riseml.cli.context import CommandContext, Exit
from riseml.cli.output.printer import discard_output, make_printer
from riseml.errors import Interrupted, Refused, RisemlError, UsageError

_DEBUG = "--debug"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})  # errors of a write to a full disk
_UsageFault: type[Exception] = typer.BadParameter.__mro__[1]  # the base class, in the library that typer parses with


class CommandGroup(TyperGroup):
    """Handles Ctrl-C and a closed pipe before typer does."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the user named."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            discard_output()
            raise Exit(0) from None
        except KeyboardInterrupt:
            ctx.obj.printer.say("", "Interrupted.")
            raise Exit(Interrupted.exit_code) from None


app = typer.Typer(
    name="riseml",
    cls=CommandGroup,
    help="Distributed training on your own Docker hosts, from one riseml.yml.",
    epilog="Exit codes: 0 done, 1 the experiment failed, 2 wrong usage or riseml.yml, 3 not found, 4 refused, "
    "5 no server or engine, 130 killed or interrupted.",
    add_completion=False,  # `riseml completion` knows IDs, and is quicker
    rich_markup_mode=None,  # plain help: quick, and readable in a pipe
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("init")(config_file.init_project)
app.command("validate")(config_file.validate_config)
app.command("train")(train_project)
app.command("status")(experiments.show_status)
app.command("logs")(experiments.print_logs)
app.command("monitor")(experiments.monitor_experiment)
app.command("kill")(experiments.kill_experiments)
app.command("exec", context_settings={"allow_interspersed_args": False})(jobs.run_command)
app.command("shell")(jobs.open_shell)
app.command("forward")(forward_port)
app.command("cp")(copy_files)
app.command("tensorboard")(open_tensorboard)
app.command("explain")(explain_experiment)
app.command("tfconfig")(print_tf_config)
app.command("completion")(print_completion)
pool_app.command("add")(add_host)
pool_app.command("remove")(remove_host)
app.add_typer(pool_app, name="pool")
app.add_typer(server_app, name="server")
app.add_typer(system_app, name="system")
_GROUPS = (["server"], ["system"])
"""Groups that do nothing without a subcommand."""


@app.callback()
def accept_root_options(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Show where an unexpected error came from.")] = False,
) -> None:
    """Declare the options before any command, for the help; `execute` handles them."""


def run() -> None:
    """Run the command line of this process: the console script."""
    try:
        sys.exit(execute(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
    except Exception:  # with --debug alone
        sys.excepthook = _print_traceback  # typer has set one that prints foreign text as it is
        raise


def _print_traceback(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    from traceback import format_exception

    make_printer(os.environ).say(*"".join(format_exception(kind, error, at)).split("\n")[:-1])


def execute(arguments: Sequence[str], context: CommandContext | None = None) -> int:
    """Run one command line and return its exit code. `--debug` may stand anywhere before a command for a job.

    Example:
        execute(["status", "4"])
    """
    context = context or _make_context()
    own = _count_own_words(arguments)
    debug = _DEBUG in arguments[:own]
    words = [*(word for word in arguments[:own] if word != _DEBUG), *arguments[own:]]
    if not words or words in _GROUPS:
        words.append("--help")
    try:
        return _call_app(words, context)
    except Exit as left:
        return left.code
    except BrokenPipeError:
        discard_output()
        return 0
    except Exception as error:
        if debug:
            raise
        shown = _convert_error(error)
        context.printer.print_error(shown)
        return shown.exit_code


def _count_own_words(words: Sequence[str]) -> int:
    """Return how many words belong to riseml; the others are a command for a job: `exec 4 -- train.py --debug`."""
    if "--" in words:
        return words.index("--")
    if words[:1] != ["exec"]:
        return len(words)
    names = [at for at, word in enumerate(words) if at and not word.startswith("-")]
    return names[0] + 1 if names else len(words)


def _convert_error(error: Exception) -> RisemlError:
    """Return the error that the user sees: one sentence and no traceback."""
    if isinstance(error, RisemlError):
        return error
    if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
        discard_output()
        message = f"the output cannot be written: {error.strerror}"
        return Refused(message, "free some space on the disk; experiments go on")
    what = str(error).splitlines()[0] if str(error) else "no message"
    message = f"riseml itself failed: {type(error).__name__}: {what}"
    return RisemlError(message, f"run the command again with {_DEBUG}, and report what it shows")


def _find_command_path(error: Exception, words: Sequence[str]) -> str:
    """Return the command that the user called, such as `riseml pool drain`; not every error of the parser has it."""
    context: Any = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    verbs = list(takewhile(str.isalpha, words))
    return " ".join(["riseml", *verbs[: 2 if verbs[:1] in _GROUPS else 1]])


def _make_context() -> CommandContext:
    try:
        folder = Path.cwd()
    except OSError:
        folder = Path(os.environ.get("PWD") or "/proc/self/cwd")  # the folder was removed; its path finds no file
    asks = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))  # questions go to stderr
    return CommandContext(make_printer(os.environ), os.environ, folder, asks=asks)


def _choose_app(words: Sequence[str]) -> typer.Typer:
    """Return the commands that a command line may mean.

    Typer builds the parsers of all its commands before it reads a word: that takes 12 ms, and 1 ms for one command
    (processor time, best of 15).
    """
    commands = [one for one in app.registered_commands if one.name == words[0]]
    groups = [one for one in app.registered_groups if one.name == words[0]]
    if words[0] == "completion" or (not commands and not groups):
        # Its script names all commands; and of a misspelt name, or an option, the others are shown.
        return app
    chosen = copy(app)
    chosen.registered_commands, chosen.registered_groups = commands, groups
    return chosen


def _call_app(words: Sequence[str], context: CommandContext) -> int:
    if words == ["--version"]:
        context.printer.print_lines([f"riseml {__version__}"])
        return 0
    try:
        code = _choose_app(words)(args=list(words), prog_name="riseml", standalone_mode=False, obj=context)
    except typer.Abort:
        context.printer.say("Nothing was done.")
        return Interrupted.exit_code
    except _UsageFault as error:
        message: str = error.format_message()  # type: ignore[attr-defined]  # its class is found at run time
        message = message.replace("is not a valid int range", "is not a whole number")
        hint = f"`{_find_command_path(error, words)} -h` shows what it takes"
        raise UsageError(message[:1].lower() + message[1:].rstrip("."), hint) from None
    return code if isinstance(code, int) else 0
