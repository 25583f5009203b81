"""Placeholders in shell lines: the value arrives as one piece of text, whatever it contains.

`{{name}}` may stand bare, inside double quotes or inside single quotes; each place needs another quoting. Where shell
code nests (command substitution, backticks, here-documents, a backslash right before), only values that need no
quoting at all are let in.
"""

from __future__ import annotations

import enum
import re
import shlex
from collections.abc import Mapping

from riseml.errors import UsageError
from riseml.spec.scalars.placeholders import find_placeholders

_HARMLESS = re.compile(r"[A-Za-z0-9_./:=,@%+-]*")
_IN_DOUBLE = re.compile(r'([\\"`$])')


class ShellContext(enum.Enum):
    """Where in a shell line a placeholder stands."""

    BARE = enum.auto()
    DOUBLE = enum.auto()
    SINGLE = enum.auto()
    NESTED = enum.auto()  # inside $( ), ` `, a here-document, $' ', a comment, or behind a backslash


def fill_placeholders(line: str, values: Mapping[str, str]) -> str:
    """Replace every placeholder that `values` has; the others stay.

    Raises:
        UsageError: a value needs quoting where no quoting can be right.
    """
    pieces: list[str] = []
    last = 0
    contexts = _contexts(line)
    for name, start, end in find_placeholders(line):
        if name not in values:
            continue
        pieces += [line[last:start], _quote(name, values[name], contexts[start])]
        last = end
    return "".join([*pieces, line[last:]])


def _quote(name: str, value: str, context: ShellContext) -> str:
    if "\0" in value:
        raise UsageError(f"the value of {{{{{name}}}}} contains a NUL character", "no command line can carry one")
    match context:
        case ShellContext.BARE:
            return shlex.quote(value)
        case ShellContext.DOUBLE:
            return _IN_DOUBLE.sub(r"\\\1", value)
        case ShellContext.SINGLE:
            return value.replace("'", "'\\''")
        case ShellContext.NESTED:
            if _HARMLESS.fullmatch(value):
                return value
            raise UsageError(
                f"the value {value!r} of {{{{{name}}}}} needs quoting, which is not safe in nested shell code",
                f"read it from the environment there: ${name.upper().replace('-', '_')}",
            )


def _contexts(line: str) -> list[ShellContext]:
    """The context of every character of a shell line; nesting is never left again, which errs on the safe side."""
    found: list[ShellContext] = []
    current = ShellContext.BARE
    escaped = False
    for index, char in enumerate(line):
        found.append(ShellContext.NESTED if escaped else current)
        if current is ShellContext.NESTED:
            continue
        if escaped:
            escaped = False
            continue
        if char == "\\" and current is not ShellContext.SINGLE:
            escaped = True
            continue
        current = _step(line, index, current)
    return found


def _step(line: str, index: int, current: ShellContext) -> ShellContext:
    """The context after an unescaped character."""
    char = line[index]
    if current is ShellContext.SINGLE:
        return ShellContext.BARE if char == "'" else current
    if char == "`" or line.startswith(("$(", "${"), index):
        return ShellContext.NESTED
    if char == '"':
        return ShellContext.BARE if current is ShellContext.DOUBLE else ShellContext.DOUBLE
    if current is ShellContext.BARE:
        if char == "'":
            return ShellContext.SINGLE
        if line.startswith(("<<", "$'", '$"'), index):
            return ShellContext.NESTED
        if char == "#" and (index == 0 or line[index - 1] in " \t\n;&|("):
            return ShellContext.NESTED
    return current
