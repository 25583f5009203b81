"""Texts that are no YAML, explained: what PyYAML found, said for somebody who does not know YAML's grammar."""

from __future__ import annotations

import re
from typing import Any

import yaml

from riseml.spec.scalars.texts import quote_text
from riseml.spec.yaml.problems import FilePosition, Problem, make_problem

_INDENT = "keys of one section start in the same column; indent with spaces"
_SENTENCES: tuple[tuple[str, str, str], ...] = (
    (r"character '\\t'", "a tab is used for indentation; YAML allows spaces only", "replace the tab by spaces"),
    (r"found unexpected end of stream", "the quote that is opened here is never closed", "add the closing quote"),
    (r"found unexpected document separator", "the quote that is opened here is never closed", "add the closing quote"),
    (r"could not find expected ':'", "this line is no `key: value`", "write a colon and a space after the key"),
    (r"expected ',' or '\}'", "the { that is opened here is never closed", "add the }, or put the text into quotes"),
    (r"expected ',' or '\]'", "the [ that is opened here is never closed", "add the ], or put the text into quotes"),
    (
        r"unknown escape character",
        "a backslash in double quotes begins a YAML escape, and this one does not exist",
        "write the text in single quotes, or double the backslash",
    ),
    (r"expected escape sequence", "a broken escape in a text in double quotes", "write the text in single quotes"),
    (
        r"alphabetic or numeric character",
        "a text that begins with * or & means an alias or an anchor in YAML",
        "put the text into quotes",
    ),
    (r"sequence entries are not allowed", "a list cannot begin here", "begin the list on a line of its own"),
    (r"found '<anchor>'", "two anchors at one value", "keep one of them"),
    (r"expected a comment or a line break", "nothing may follow | or > in a line", "begin the text on the next line"),
    (r"indentation indicator", "a broken | or > text", "write `|` or `>-`, then the text on indented lines below"),
    (r"block end>, but found '-'", "a list item where a key is expected: the indentation is wrong", _INDENT),
    (r"block end>, but found '\?'", "a key where a list item is expected: the indentation is wrong", _INDENT),
    (
        r"block end>, but found '<(scalar|alias|tag)>'",
        "text after the closing quote, or a line with the wrong indentation",
        "put the whole text into one pair of quotes",
    ),
    (r"block end>", "the indentation is wrong: this fits neither the lines above nor a section around them", _INDENT),
    (r"document start>", "text after the end of the document", "keep one document, and one kind of value at its top"),
    (r"incompatible YAML document", "this YAML version is not read", "leave the %YAML line out"),
    (r"undefined tag handle", "YAML tags are not read", "put a text that begins with ! into quotes"),
)
_OPENED = ("while scanning a quoted scalar", "while parsing a flow mapping", "while parsing a flow sequence")


def explain_syntax_error(error: yaml.YAMLError, text: str, name: str) -> Problem:
    """The problem behind an error of PyYAML's scanner and parser."""
    if isinstance(error, yaml.reader.ReaderError):
        return _unreadable(error, text, name)
    if not isinstance(error, yaml.MarkedYAMLError):
        return make_problem(FilePosition(name), (), f"this is no YAML: {error}")
    said = error.problem or "it cannot be read"
    if "mapping values are not allowed" in said and error.problem_mark is not None:
        return _second_colon(text, error.problem_mark, name)
    at_start = error.context in _OPENED and "escape" not in said
    mark = (error.context_mark if at_start else None) or error.problem_mark or error.context_mark
    position = FilePosition(name) if mark is None else FilePosition(name, mark.line + 1, mark.column + 1)
    for pattern, problem, hint in _SENTENCES:
        if re.search(pattern, said):
            return make_problem(position, (), problem, hint)
    found = re.search(r"found character (.+) that cannot start any token", said)
    if found is not None:
        problem = f"a text cannot begin with {found[1].strip(chr(39))} without quotes"
        return make_problem(position, (), problem, "put the whole text into quotes")
    return make_problem(position, (), f"this is no YAML: {said}")


def _second_colon(text: str, mark: Any, name: str) -> Problem:
    """A colon where none can be: a text that needs quotes, a forgotten space in a line above, or wrong indentation."""
    lines = text.splitlines()[: mark.line + 1]
    position = FilePosition(name, mark.line + 1, mark.column + 1)
    if ": " in lines[-1][: mark.column]:
        return make_problem(position, (), "a second `: ` in this line", "put the text after the first one into quotes")
    for number in range(len(lines) - 1, 0, -1):
        above = lines[number - 1]
        if re.match(r"\s*[\w-]+:[^\s/]", above):
            column = above.index(":") + 2
            return make_problem(
                FilePosition(name, number, column), (), "a space is missing after the colon", "write `key: value`"
            )
        if above.strip():
            break
    column = len(lines[-1]) - len(lines[-1].lstrip()) + 1
    problem = "the indentation is wrong: the line above has a value, so nothing can stand below it"
    return make_problem(FilePosition(name, mark.line + 1, column), (), problem, _INDENT)


def explain_encoding_error(error: UnicodeDecodeError, content: bytes, name: str) -> Problem:
    """The problem of bytes that are no UTF-8."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return make_problem(FilePosition(name), (), "the file is UTF-16, not UTF-8", "save it as UTF-8")
    before = content[: error.start].decode("utf-8", "replace")
    column = len(before) - (before.rfind("\n") + 1) + 1
    position = FilePosition(name, before.count("\n") + 1, column)
    problem = f"byte 0x{content[error.start]:02x} is no UTF-8"
    return make_problem(position, (), problem, "save the file as UTF-8")


def _unreadable(error: yaml.reader.ReaderError, text: str, name: str) -> Problem:
    before = text[: error.position]
    position = FilePosition(name, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
    shown = quote_text(text[error.position : error.position + 1])
    return make_problem(position, (), f"a control character that YAML does not allow: {shown}", "remove it")
