"""Fill placeholders in shell lines, so that the shell sees each value as one piece of text, whatever it contains.

`{{name}}` may be bare, inside double quotes or inside single quotes; each context needs another quoting. In nested
shell code (command substitution, backticks, here-documents, directly after a backslash), only values that need no
quoting are allowed.
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
    """The context of a placeholder in a shell line."""

    BARE = enum.auto()
    DOUBLE = enum.auto()
    SINGLE = enum.auto()
    NESTED = enum.auto()  # inside $( ), ` `, a here-document, $' ', a comment, or behind a backslash


def fill_placeholders(line: str, values: Mapping[str, str]) -> str:
    """Return the line with every placeholder replaced that `values` has; other placeholders stay.

    Example:
        fill_placeholders("train --name {{name}}", {"name": "a b"})   # "train --name 'a b'"

    Raises:
        UsageError: a value needs quoting in nested shell code, where no quoting is safe.
    """
    pieces: list[str] = []
    last = 0
    contexts = _find_contexts(line)
    for name, start, end in find_placeholders(line):
        if name not in values:
            continue
        pieces += [line[last:start], _quote_for(name, values[name], contexts[start])]
        last = end
    return "".join([*pieces, line[last:]])


def _quote_for(name: str, value: str, context: ShellContext) -> str:
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


def _find_contexts(line: str) -> list[ShellContext]:
    """Return the context of each character of a shell line. Nested code lasts to the end of the line: that is safe."""
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
        current = _next_context(line, index, current)
    return found


def _next_context(line: str, index: int, current: ShellContext) -> ShellContext:
    """Return the context after an unescaped character."""
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
