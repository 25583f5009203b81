"""The command `riseml`: all verbs, and what becomes of their errors."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from riseml import __version__
from riseml.cli.commands import files, pool, show, system
from riseml.cli.commands import train as running
from riseml.cli.commands.explain import explain
from riseml.cli.commands.system_test import system_test
from riseml.cli.commands.tfconfig import tfconfig
from riseml.cli.output.printer import make_render, silence
from riseml.cli.tools import Exit, Tools
from riseml.errors import Interrupted, Refused, RisemlError, UsageError

_DEBUG = "--debug"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})  # what a write to a file without room ends with
_BadUsage: type[Exception] = typer.BadParameter.__mro__[1]  # its base, whichever library typer parses with


class Commands(TyperGroup):
    """Takes away from typer what it would do on its own when the user, or the reader of the output, leaves."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            silence()
            raise Exit(0) from None
        except KeyboardInterrupt:
            ctx.obj.render.say("", "Interrupted.")
            raise Exit(Interrupted.exit_code) from None


app = typer.Typer(
    name="riseml",
    cls=Commands,
    help="Distributed training on your own Docker hosts, from one riseml.yml.",
    epilog="Exit codes: 0 done, 1 the experiment failed, 2 wrong usage or riseml.yml, 3 not found, 4 refused, "
    "5 no server or engine, 130 killed or interrupted.",
    rich_markup_mode=None,  # plain help: quick, and readable in a pipe
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command()(files.init)
app.command()(files.validate)
app.command()(running.train)
app.command()(show.status)
app.command()(show.logs)
app.command()(show.monitor)
app.command()(show.kill)
app.command()(explain)
app.command()(tfconfig)
app.add_typer(pool.pool, name="pool")
app.add_typer(system.server, name="server")
app.add_typer(system.system, name="system")
system.system.command("test")(system_test)
_GROUPS = (["server"], ["system"])
"""Groups that do nothing by themselves."""


@app.callback()
def root(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Show where an unexpected error came from.")] = False,
) -> None:
    """Options before any command; `execute` has taken them out."""


def run() -> None:
    """The console script."""
    try:
        sys.exit(execute(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)


def execute(arguments: Sequence[str], tools: Tools | None = None) -> int:
    """Run one command line and give its exit code. `--debug` may stand anywhere."""
    debug = _DEBUG in arguments
    tools = tools or _look_around()
    words = [word for word in arguments if word != _DEBUG]
    if not words or words in _GROUPS:
        words.append("--help")
    try:
        return _call(words, tools)
    except Exit as left:
        return left.code
    except BrokenPipeError:
        silence()
        return 0
    except Exception as error:
        if debug:
            raise
        told = _explain(error)
        tools.render.error(told)
        return told.exit_code


def _explain(error: Exception) -> RisemlError:
    """What a person is told: one sentence, whatever it was, and no traceback."""
    if isinstance(error, RisemlError):
        return error
    if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
        silence()
        return Refused(f"the output cannot be written: {error.strerror}", "free some space; what runs goes on running")
    what = str(error).splitlines()[0] if str(error) else "no further word"
    message = f"riseml itself failed: {type(error).__name__}: {what}"
    return RisemlError(message, f"run again with {_DEBUG}, and report what it shows")


def _find_command(error: Exception, words: Sequence[str]) -> str:
    """The command that was called wrongly; not every error of the parser knows it."""
    context: Any = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    verbs = list(takewhile(str.isalpha, words))
    return " ".join(["riseml", *verbs[: 2 if verbs[:1] in _GROUPS else 1]])


def _look_around() -> Tools:
    try:
        folder = Path.cwd()
    except OSError:
        folder = Path(os.environ.get("PWD") or "/proc/self/cwd")  # it was removed: nothing will be found there
    return Tools(make_render(os.environ), os.environ, folder, asks=sys.stdin is not None and sys.stdin.isatty())


def _call(words: Sequence[str], tools: Tools) -> int:
    if words == ["--version"]:
        tools.render.print(f"riseml {__version__}")
        return 0
    try:
        code = app(args=list(words), prog_name="riseml", standalone_mode=False, obj=tools)
    except typer.Abort:
        tools.render.say("Nothing was done.")
        return Interrupted.exit_code
    except _BadUsage as error:
        message: str = error.format_message()  # type: ignore[attr-defined]  # its class is found at run time
        message = message.replace("is not a valid int range", "is no whole number")
        hint = f"`{_find_command(error, words)} -h` shows what it takes"
        raise UsageError(message[:1].lower() + message[1:].rstrip("."), hint) from None
    return code if isinstance(code, int) else 0
