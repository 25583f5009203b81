"""Fill placeholders in shell lines, so that the shell sees each value as one piece of text, whatever it contains.

`{{name}}` may be bare, inside double quotes or inside single quotes; each context needs another quoting. In nested
shell code (command substitution, backticks, here-documents, comments, directly after a backslash), only values that
need no quoting are allowed. Nested code lasts to the end of the line, unless its end is certain: of a comment, of a
here-document in a plain form, of `${NAME}`, and of a command substitution without quotes.
"""

from __future__ import annotations

import enum
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from riseml.base.errors import UsageError
from riseml.spec.scalars.placeholders import find_placeholders, variable_name

_HARMLESS = re.compile(r"[A-Za-z0-9_./:=,@%+-]*")
_IN_DOUBLE = re.compile(r'([\\"`$])')
# Substitutions that are over at their bracket. The `)` after a pattern of `case` would be none of `$(`.
_CLOSED = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$\((?![^)]*case)[A-Za-z0-9_./ =,:+@%|$*-]*\)")
# `<<'EOF'` and what follows on its line, where nothing begins that may last longer than the line.
_HERE_DOCUMENT = re.compile(
    r"<<(-?)[ \t]*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2(?=[ \t;|&>\n])[A-Za-z0-9_./ \t=,:+@%|$*;&>-]*\n"
)
_EXPANDED = re.compile(r"[\\`]|\$[({]")  # in a here-document: shells differ in whether its end can be inside of these
_COMMENT_FOLLOWS = " \t\n;&|()<>"


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


def check_values(lines: Iterable[str], values: Mapping[str, Sequence[str]]) -> None:
    """Refuse values that a line cannot take, before anything starts.

    Args:
        lines: of `run`.
        values: all values that each placeholder may get.

    Raises:
        UsageError: a value needs quoting in nested shell code, where no quoting is safe.
    """
    for line in dict.fromkeys(lines):
        contexts = _find_contexts(line)
        for name, start, _ in find_placeholders(line):
            if contexts[start] is ShellContext.NESTED:
                for value in values.get(name, ()):
                    _quote_for(name, value, ShellContext.NESTED)


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
                f"read it from the environment there: ${variable_name(name)}",
            )


def _find_contexts(line: str) -> list[ShellContext]:
    """Return the context of each character of a shell line."""
    contexts: list[ShellContext] = []
    current = ShellContext.BARE
    escaped = former = False  # this character, and the one before it
    for index, char in enumerate(line):
        if index < len(contexts):
            continue
        contexts.append(ShellContext.NESTED if escaped else current)
        if escaped:
            escaped = False
            former = True
            continue
        if char == "\\" and current is not ShellContext.SINGLE:
            escaped = True
            continue
        following = _next_context(line, index, current)
        if following is ShellContext.NESTED:
            end = len(line) if current is ShellContext.DOUBLE or former else _find_end(line, index)
            contexts += [ShellContext.NESTED] * (end - len(contexts))
        else:
            current = following
        former = False
    return contexts


def _find_end(line: str, index: int) -> int:
    """Return where the nested code ends that begins at a character outside quotes; the end of the line if unsure."""
    if line[index] == "#":
        end = line.find("\n", index)
        return len(line) if end < 0 else end
    begin = _HERE_DOCUMENT.match(line, index)
    if begin is None:
        return len(line)
    tabs, quote, word = begin.groups()
    indent = r"\t*" if tabs else ""
    last = re.compile(f"^{indent}{word}$", re.MULTILINE).search(line, begin.end())
    if last is None or (not quote and _EXPANDED.search(line, begin.end(), last.start())):
        return len(line)
    return last.end()


def _next_context(line: str, index: int, current: ShellContext) -> ShellContext:
    """Return the context after an unescaped character."""
    char = line[index]
    if current is ShellContext.SINGLE:
        return ShellContext.BARE if char == "'" else current
    if char == "`" or (line.startswith(("$(", "${"), index) and not _CLOSED.match(line, index)):
        return ShellContext.NESTED
    if char == '"':
        return ShellContext.BARE if current is ShellContext.DOUBLE else ShellContext.DOUBLE
    if current is ShellContext.BARE:
        if char == "'":
            return ShellContext.SINGLE
        if line.startswith(("<<", "$'", '$"'), index):
            return ShellContext.NESTED
        if char == "#" and (index == 0 or line[index - 1] in _COMMENT_FOLLOWS):
            return ShellContext.NESTED
    return current
