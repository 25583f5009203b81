"""The help of a command: what it takes in words, summaries as a whole, and examples at the end.

typer's own help shows the types of its parser (`<int range>`, `[0<=x<=65535]`), and cuts the summary of a command at
the width of the terminal. Objects and contexts of that parser have no public types, so they are `Any` here.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from riseml.cli.output.style import paint

_Function = TypeVar("_Function", bound=Callable[..., object])

_NAMES = 26  # most columns of the names of a section; the text of a longer name begins on the next line


class HelpCommand(TyperCommand):
    """A command whose help riseml writes."""

    def get_help(self, ctx: Any) -> str:
        """Return the help, with painted headings on a terminal that shows colours."""
        return _paint_headings(super().get_help(ctx), ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line behind the name of the command."""
        return _list_usage(self, ctx)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does."""
        write_paragraphs(formatter, self.help)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write what the command takes."""
        _write_parameters(self.get_params(ctx), formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _write_examples(self.epilog, formatter)


class HelpGroup(TyperGroup):
    """A group of commands whose help riseml writes."""

    def get_help(self, ctx: Any) -> str:
        """Return the help, with painted headings on a terminal that shows colours."""
        return _paint_headings(super().get_help(ctx), ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line behind the name of the group."""
        return [*_list_usage(self, ctx), self.subcommand_metavar]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the group is for."""
        write_paragraphs(formatter, self.help)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of the group, and what the group itself takes."""
        self.format_commands(ctx, formatter)
        _write_parameters(self.get_params(ctx), formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of the group."""
        visible = [command for command in self.commands.values() if not command.hidden]
        write_section(formatter, "Commands", [(command.name or "", _summarize(command.help)) for command in visible])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _write_examples(self.epilog, formatter)


def add_subcommand(app: typer.Typer, name: str, *examples: str) -> Callable[[_Function], _Function]:
    """Return a decorator that adds a function to a group of commands.

    Args:
        app: the group.
        name: as the user types it.
        examples: whole command lines, for the end of its help.

    Example:
        @add_subcommand(pool_app, "drain", "riseml pool drain gpu1")
    """
    return app.command(name, cls=HelpCommand, epilog="\n".join(examples))


def write_paragraphs(formatter: Any, text: str | None, indent: str = "  ") -> None:
    """Write the paragraphs of a text, each behind an empty line, wrapped at spaces alone: `--dry-run` stays whole."""
    for paragraph in inspect.cleandoc(text or "").split("\n\n"):
        formatter.write("\n")
        for line in _wrap(paragraph, formatter.width - len(indent)):
            formatter.write(f"{indent}{line}\n")


def write_section(formatter: Any, heading: str, rows: Sequence[tuple[str, str]], width: int = 0) -> None:
    """Write rows of two columns below a heading; nothing without rows.

    Args:
        formatter: of typer's parser.
        heading: without a colon.
        rows: a name, and a text that is wrapped and never cut.
        width: columns of the names at least, so that several sections are aligned.
    """
    if not rows:
        return
    column = max(width, *(len(name) for name, _ in rows if len(name) <= _NAMES), 1)
    formatter.write(f"\n{heading}:\n")
    for name, text in rows:
        first, *wrapped = _wrap(text, formatter.width - column - 4) or [""]
        if len(name) > column:
            formatter.write(f"  {name}\n")
            name = ""
        formatter.write(f"  {name:<{column}}  {first}".rstrip() + "\n")
        for line in wrapped:
            formatter.write(f"  {'':<{column}}  {line}\n")


def describe_range(low: float | None, high: float | None) -> str:
    """Return the range of a number in words; empty for any number from 0.

    Example:
        >>> describe_range(0, 65535), describe_range(0, 10_000_000), describe_range(1, None)
        ('0 to 65535', '0 to 10,000,000', 'at least 1')
    """
    if high is not None:
        return f"at most {_format_bound(high)}" if low is None else f"{_format_bound(low)} to {_format_bound(high)}"
    return f"at least {_format_bound(low)}" if low else ""


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


def _format_bound(bound: float) -> str:
    return f"{bound:,}" if bound > 99_999 else f"{bound:g}"  # a port is written without a comma


def _list_usage(command: Any, ctx: Any) -> list[str]:
    pieces = [command.options_metavar] if command.options_metavar else []
    for parameter in command.params:
        if parameter.param_type_name == "argument" and not parameter.hidden:
            name = _name_value(parameter)
            pieces.append(name if parameter.required or name.startswith("[") else f"[{name}]")
    return pieces


def _write_parameters(parameters: Iterable[Any], formatter: Any) -> None:
    visible = [parameter for parameter in parameters if not parameter.hidden]
    for heading, kind in (("Arguments", "argument"), ("Options", "option")):
        chosen = [parameter for parameter in visible if parameter.param_type_name == kind]
        write_section(formatter, heading, [(_name_parameter(each), _describe_parameter(each)) for each in chosen])


def _name_parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = _name_value(parameter)
        return name[1:-1] if name.startswith("[") and name.endswith("]") else name
    names = ", ".join(sorted(parameter.opts, key=lambda name: name.startswith("--")))
    if parameter.secondary_opts:
        names = f"{names} / {', '.join(parameter.secondary_opts)}"
    return names if parameter.is_flag else f"{names} {_name_value(parameter)}"


def _name_value(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper().replace("_", "-"))


def _describe_parameter(parameter: Any) -> str:
    """Return the help of an argument or option, then which values it takes and what is taken without it."""
    kind = parameter.type
    texts = [parameter.help or ""]
    if hasattr(kind, "choices"):
        *names, last = (_name_choice(choice) for choice in kind.choices)
        texts.append(f"{_name_value(parameter)} is {', '.join(names)} or {last}.")
    elif hasattr(kind, "min"):
        described = describe_range(kind.min, kind.max)
        texts.append(f"{described[:1].upper()}{described[1:]}." if described else "")
    default = parameter.default
    if parameter.show_default is True and default not in (None, False, "", ()):
        text = max(parameter.opts, key=len) if default is True else _name_choice(default)
        texts.append(f"Default: {text}.")
    return " ".join(filter(None, texts))


def _name_choice(choice: object) -> str:
    return str(getattr(choice, "value", choice))


def _summarize(text: str | None) -> str:
    """Return the first paragraph of a help on one line."""
    return " ".join((text or "").partition("\n\n")[0].split())


def _write_examples(examples: str | None, formatter: Any) -> None:
    """Write examples as they are: a line that is wrapped cannot be copied."""
    if examples:
        lines = examples.split("\n")
        formatter.write(f"\n{'Example' if len(lines) == 1 else 'Examples'}:\n")
        for line in lines:
            formatter.write(f"  {line}\n")


def _paint_headings(text: str, ctx: Any) -> str:
    """Return a help with bold headings, which alone begin at the first column, when the terminal shows colours."""
    printer = getattr(ctx.obj, "printer", None)
    if printer is None or not printer.colour:
        return text
    lines = []
    for line in text.split("\n"):
        heading, colon, behind = line.partition(":")
        is_heading = colon and not line.startswith(" ")
        lines.append(f"{paint(f'{heading}:', '1', colour=True)}{behind}" if is_heading else line)
    return "\n".join(lines)
