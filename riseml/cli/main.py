"""The command `riseml`: its commands, and how their errors become messages and exit codes."""

from __future__ import annotations

import atexit
import errno
import os
import re
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, NoReturn

import typer

from riseml.base.errors import Interrupted, Refused, RisemlError, UsageError
from riseml.cli.command_table import add_commands, list_names, list_sections
from riseml.cli.context import CommandContext, Exit
from riseml.cli.help_text import HelpGroup, describe_range, write_paragraphs, write_section
from riseml.cli.output.printer import discard_output, make_printer

_DEBUG = "--debug"
_SERVER = "--server"
_JSON = "--json"
_FULL_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})  # errors of a write to a full disk
_UsageFault: type[Exception] = typer.BadParameter.__mro__[1]  # the base class, in the library that typer parses with

_GROUPS = (["server"], ["system"], ["user"], ["key"], ["project"], ["self"])
"""Groups that do nothing without a subcommand."""


class CommandGroup(HelpGroup):
    """Handles Ctrl-C and a closed pipe before typer does, and lists all commands in sections."""

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

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write all commands in their sections, from the table: their modules are not imported."""
        sections = list(list_sections())
        width = max(len(name) for _, rows in sections for name, _ in rows)
        for heading, rows in sections:
            write_section(formatter, heading, rows, width)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write what the exit codes mean, and where more help is."""
        write_paragraphs(formatter, self.epilog, indent="")


def accept_root_options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version, and the commit that it was made of.")
    ] = False,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Show where an unexpected error came from.")] = False,
    server: Annotated[
        str | None,
        typer.Option(_SERVER, metavar="NAME", help="Ask this server: a context, a URL, or `local` for your own."),
    ] = None,
) -> None:
    """Declare the options before any command, for the help; `execute` handles them.

    Raises:
        UsageError: a command follows `--version`.
    """
    del debug, server
    if version:
        raise UsageError("--version stands alone", "leave it out, or the command")


def make_app(words: Sequence[str]) -> typer.Typer:
    """Return the command line interface with the command that `words` name, or with all of them."""
    app = typer.Typer(
        name="riseml",
        cls=CommandGroup,
        help="Distributed training on your own Docker hosts, from one riseml.yml.",
        epilog="Exit codes: 0 done, 1 the experiment failed, 2 wrong usage or riseml.yml, 3 not found, 4 refused, "
        "5 no server or engine, 130 killed or interrupted.\n\n`riseml help train` explains a command, with examples.",
        add_completion=False,  # no completion of typer: `riseml completion` also completes IDs, and is faster
        rich_markup_mode=None,  # plain help: quick, and readable in a pipe
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(accept_root_options)
    add_commands(app, words)
    return app


def run() -> None:
    """Run the command line of this process: the console script."""
    try:
        leave_process(execute(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
    except Exception:  # with --debug alone
        sys.excepthook = _print_traceback  # typer has set a hook that prints foreign text as it is
        raise


def execute(arguments: Sequence[str], context: CommandContext | None = None) -> int:
    """Run one command line and return its exit code. `--debug` and `--server` may stand anywhere before a command for a
    job.

    Example:
        execute(["status", "4"])
    """
    context = context or _make_context()
    own = _count_own_words(arguments)
    debug = _DEBUG in arguments[:own]
    words = [*(word for word in arguments[:own] if word != _DEBUG), *arguments[own:]]
    context = replace(context, json_errors=_JSON in arguments[:own])
    try:
        if any(word.startswith(_SERVER) for word in words[:own]):
            words, context = _take_server(words, own - debug, context)
        return _call_app(_translate(words), context)
    except Exit as left:
        return left.code
    except BrokenPipeError:
        discard_output()
        return 0
    except Exception as error:
        if debug:
            raise
        riseml_error = _convert_error(error)
        context.print_error(riseml_error)
        return riseml_error.exit_code


def _take_server(words: Sequence[str], own: int, context: CommandContext) -> tuple[list[str], CommandContext]:
    """Return a command line without `--server NAME`, and the context of a command for that server.

    Args:
        words: the command line.
        own: how many of the words belong to riseml.
        context: of the command.

    Raises:
        UsageError: no name follows, or several do.
    """
    names: list[str] = []
    left: list[str] = []
    reading = iter(words[:own])
    for word in reading:
        option, equals, value = word.partition("=")
        if option != _SERVER:
            left.append(word)
            continue
        name = value if equals else next(reading, "")
        if not name or name.startswith("-"):
            raise UsageError(f"{_SERVER} needs a name or a URL", "`riseml context` lists the names")
        names.append(name)
    if len(set(names)) > 1:
        raise UsageError(f"{_SERVER} names several servers: {', '.join(names)}", "name one")
    if not names:  # another option begins with the same letters
        return list(words), context
    environ = {**context.environ, "RISEML_SERVER": names[0]}
    return [*left, *words[own:]], replace(context, environ=environ)


def leave_process(code: int) -> NoReturn:
    """End this process with an exit code, after flushing the output and running the registered exit functions.

    Python's clean-up of all modules takes 5 to 10 ms of processor time, a tenth of `riseml status`. When a thread must
    be joined, or the output cannot be written, Python ends the process as usual.
    """
    if all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        atexit._run_exitfuncs()  # as Python itself does
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except (OSError, ValueError):  # Python itself reports what is wrong with the stream
            sys.exit(code)
        with suppress(OSError, ValueError):  # no stream is left to report it
            if sys.stderr is not None:
                sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _print_traceback(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    from traceback import format_exception

    make_printer(os.environ).say(*"".join(format_exception(kind, error, at)).split("\n")[:-1])


def _count_own_words(words: Sequence[str]) -> int:
    """Return how many words belong to riseml; the others are a command for a job: `exec 4 -- train.py --debug`."""
    end = words.index("--") if "--" in words else len(words)
    names = [
        at for at, word in enumerate(words[:end]) if not word.startswith("-") and not (at and words[at - 1] == _SERVER)
    ]
    if len(names) > 1 and words[names[0]] == "exec":
        return names[1] + 1  # the job's ID is the last of them
    return end


def _convert_error(error: Exception) -> RisemlError:
    """Return the error that the user sees: one sentence and no traceback."""
    if isinstance(error, RisemlError):
        return error
    if isinstance(error, OSError) and error.errno in _FULL_DISK_ERRORS and error.filename is None:
        discard_output()
        message = f"the output cannot be written: {error.strerror}"
        return Refused(message, "free some space on the disk; experiments go on")
    if isinstance(error, OSError) and error.filename is not None:
        filename = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else str(error.filename)
        room = error.errno in _FULL_DISK_ERRORS
        hint = "free some space on the disk" if room else "check the path, and who may use it and the folders above it"
        return Refused(f"{filename}: {error.strerror}", hint)
    if isinstance(error, UnicodeEncodeError) and "\udc80" <= error.object[error.start] <= "\udcff":
        return UsageError(f"{_find_odd_word(error)} is not UTF-8 text", "rename the file, or write the text in UTF-8")
    first_line = str(error).splitlines()[0] if str(error) else "no message"
    message = f"riseml itself failed: {type(error).__name__}: {first_line}"
    return RisemlError(message, f"run the command again with {_DEBUG}, and report what it shows")


def _find_odd_word(error: UnicodeEncodeError) -> str:
    """Return the value with a byte that is not UTF-8; the value may be inside the JSON of a request."""
    before = error.object[: error.start]
    after = error.object[error.start :]
    word = before.rpartition('"')[2] + after.partition('"')[0]
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _put_into_words(message: str) -> str:
    """Return a message of the parser without its names of types and its formulas of ranges."""
    message = message.replace("is not a valid int range", "is not a whole number")
    message = message.replace("is not a valid float range", "is not a number")
    match = re.search(r"is not in the range (?:([\d.-]+)<=x<=([\d.-]+?)|x>=([\d.-]+?))\.$", message)
    if match is None:
        return message
    low, high, least = match.groups()
    words = f"is less than {least}" if least else f"is not in the range {describe_range(float(low), float(high))}"
    return message[: match.start()] + words


def _find_command_path(error: Exception, words: Sequence[str]) -> str:
    """Return the command that the user called, such as `riseml pool drain`; not every error of the parser has it."""
    context: Any = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    verbs = list(takewhile(str.isalpha, words))
    return " ".join(["riseml", *verbs[: 2 if verbs[:1] in _GROUPS else 1]])


def _translate(words: list[str]) -> list[str]:
    """Return the command line for the parser: with `--help` where a user asks for help without it."""
    if words and (words[0] in ("-v", "-V") or words[0][:1] != "-") and words[0] not in list_names():
        from riseml.cli.other_words import translate_words

        words = translate_words(words)
    return [*words, "--help"] if not words or words in _GROUPS else words


def _make_context() -> CommandContext:
    try:
        folder = Path.cwd()
    except OSError:
        folder = Path(os.environ.get("PWD") or "/proc/self/cwd")  # it was removed: the path finds no file
    asks = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))  # questions go to stderr
    return CommandContext(make_printer(os.environ), os.environ, folder, asks=asks)


def _call_app(words: Sequence[str], context: CommandContext) -> int:
    if words == ["--version"]:
        from riseml.cli.version_text import describe_version

        context.printer.print_lines([describe_version()])
        return 0
    try:
        code = make_app(words)(args=list(words), prog_name="riseml", standalone_mode=False, obj=context)
    except typer.Abort:
        context.printer.say("Nothing was done.")
        return Interrupted.exit_code
    except _UsageFault as error:
        message: str = error.format_message()  # type: ignore[attr-defined]  # the class is known at run time only
        message = _put_into_words(message)
        hint = f"`{_find_command_path(error, words)} -h` shows what it takes"
        raise UsageError(message[:1].lower() + message[1:].rstrip("."), hint) from None
    return code if isinstance(code, int) else 0
