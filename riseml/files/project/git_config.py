"""Values in the configuration files of git: its own format, read line by line in one pass. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}

Setting = tuple[str, str]
"""A key in lower case, such as `core.excludesfile` or `includeif.gitdir:~/lab/.path`, and its value."""


def parse_config(text: str) -> Iterator[Setting]:
    """Yield the settings of a file in their order. What is not git's format is left out.

    Example:
        >>> list(parse_config('[core]\\n\\texcludesFile = "~/my ignore" # mine\\n'))
        [('core.excludesfile', '~/my ignore')]
    """
    section = ""
    lines = iter(text.removeprefix("\ufeff").split("\n"))
    for line in lines:
        body = line.strip()
        if body.startswith("["):
            section, body = _parse_section(body)
        if not section or not body or body[0] in "#;":
            continue
        name, mark, value = body.partition("=")
        key = name.strip().lower()
        if not mark:
            key = key.partition("#")[0].partition(";")[0].strip()
            value = "true"  # as git reads a key alone
        else:
            value = _parse_value(value, lines)
        if key.replace("-", "").isalnum():
            yield f"{section}.{key}", value


def find_last(settings: Iterable[Setting], key: str) -> str | None:
    """Return the last value of a key, which is the one that counts; None: it is not set."""
    value = None
    for name, text in settings:
        if name == key:
            value = text
    return value


def _parse_section(line: str) -> tuple[str, str]:
    """Return the section that a line begins, and what follows on the line. An empty section: the line is malformed."""
    name, quote, after = line[1:].partition('"')
    end = line.find("]")
    if not quote or 0 <= end <= len(name):
        return (line[1:end].strip().lower(), line[end + 1 :].strip()) if end > 0 else ("", "")
    inner: list[str] = []
    chars = iter(enumerate(after))
    for at, char in chars:
        if char == '"':
            bracket, _, tail = after[at + 1 :].partition("]")
            is_closed = not bracket.strip() and len(bracket) < len(after) - at - 1
            return (f"{name.strip().lower()}.{''.join(inner)}", tail.strip()) if is_closed else ("", "")
        inner.append(next(chars, (0, ""))[1] if char == "\\" else char)
    return "", ""


def _parse_value(text: str, more: Iterator[str]) -> str:
    """Return a value without its quotes and comment. `more`: the lines after it; a backslash at the end takes one."""
    pieces: list[str] = []
    length = 0  # pieces up to the last one that is not a space at the end
    is_quoted = False
    chars: Iterator[str] = iter(text.strip())
    while char := next(chars, ""):
        if char == '"':
            is_quoted = not is_quoted
        elif char == "\\":
            char = next(chars, "")
            if not char:
                chars = iter(next(more, "").rstrip())
                continue
            pieces.append(_ESCAPES.get(char, char))
        elif char in "#;" and not is_quoted:
            break
        else:
            pieces.append(char)
        if is_quoted or not char.isspace():
            length = len(pieces)
    return "".join(pieces[:length])
