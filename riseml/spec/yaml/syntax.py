"""Explain syntax errors: what PyYAML reports, in words that need no knowledge of YAML's grammar."""

from __future__ import annotations

import re
from typing import Any

import yaml

from riseml.spec.scalars.texts import quote_text
from riseml.spec.yaml.problems import FilePosition, Problem, make_problem

_INDENT = "keys of one section start in the same column; indent with spaces"
_SENTENCES: tuple[tuple[str, str, str], ...] = (
    (r"character '\\t'", "the line is indented with a tab; YAML allows only spaces", "replace the tab with spaces"),
    (r"found unexpected end of stream", "the quote opened here is never closed", "add the closing quote"),
    (r"found unexpected document separator", "the quote opened here is never closed", "add the closing quote"),
    (r"could not find expected ':'", "this line is not `key: value`", "write a colon and a space after the key"),
    (r"expected ',' or '\}'", "the { opened here is never closed", "add the }, or put the text in quotes"),
    (r"expected ',' or '\]'", "the [ opened here is never closed", "add the ], or put the text in quotes"),
    (
        r"unknown escape character",
        "unknown escape sequence: in double quotes, a backslash begins one",
        "use single quotes, or double the backslash",
    ),
    (r"expected escape sequence", "invalid escape sequence in double quotes", "use single quotes"),
    (
        r"alphabetic or numeric character",
        "YAML reads a text that begins with * or & as an alias or an anchor",
        "put the text in quotes",
    ),
    (r"sequence entries are not allowed", "a list cannot begin here", "begin the list on a line of its own"),
    (r"found '<anchor>'", "the value has two anchors", "keep one of them"),
    (r"expected a comment or a line break", "nothing may follow | or > on its line", "begin the text on the next line"),
    (r"indentation indicator", "invalid | or > text", "write `|` or `>-`, then the text on indented lines below"),
    (r"block end>, but found '-'", "a list item where a key is expected: the indentation is wrong", _INDENT),
    (r"block end>, but found '\?'", "a key where a list item is expected: the indentation is wrong", _INDENT),
    (
        r"block end>, but found '<(scalar|alias|tag)>'",
        "text after the closing quote, or a line with the wrong indentation",
        "put the whole text in one pair of quotes",
    ),
    (r"block end>", "the indentation is wrong: it matches no line above", _INDENT),
    (r"document start>", "text after the end of the document", "keep one document, and one kind of value at its top"),
    (r"incompatible YAML document", "this YAML version is not supported", "remove the %YAML line"),
    (r"undefined tag handle", "YAML tags are not supported", "put a text that begins with ! in quotes"),
)
_OPENED = ("while scanning a quoted scalar", "while parsing a flow mapping", "while parsing a flow sequence")


def explain_syntax_error(error: yaml.YAMLError, text: str, name: str) -> Problem:
    """Return the problem that an error of PyYAML's scanner or parser reports."""
    if isinstance(error, yaml.reader.ReaderError):
        return _explain_character(error, text, name)
    if not isinstance(error, yaml.MarkedYAMLError):
        return make_problem(FilePosition(name), (), f"this is not YAML: {error}")
    sentence = error.problem or "it cannot be read"
    if "mapping values are not allowed" in sentence and error.problem_mark is not None:
        return _explain_colon(text, error.problem_mark, name)
    at_start = error.context in _OPENED and "escape" not in sentence
    mark = (error.context_mark if at_start else None) or error.problem_mark or error.context_mark
    position = FilePosition(name) if mark is None else FilePosition(name, mark.line + 1, mark.column + 1)
    for pattern, problem, hint in _SENTENCES:
        if re.search(pattern, sentence):
            return make_problem(position, (), problem, hint)
    match = re.search(r"found character (.+) that cannot start any token", sentence)
    if match is not None:
        problem = f"a text that begins with {match[1].strip(chr(39))} needs quotes"
        return make_problem(position, (), problem, "put the whole text in quotes")
    return make_problem(position, (), f"this is not YAML: {sentence}")


def _explain_colon(text: str, mark: Any, name: str) -> Problem:
    """Explain an unexpected colon: a text that needs quotes, a missing space in a line above, or wrong indentation."""
    lines = text.splitlines()[: mark.line + 1]
    position = FilePosition(name, mark.line + 1, mark.column + 1)
    if ": " in lines[-1][: mark.column]:
        return make_problem(position, (), "the line has a second `: `", "put the text after the first one in quotes")
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
    problem = "the indentation is wrong: the line above has a value, so no keys can follow below it"
    return make_problem(FilePosition(name, mark.line + 1, column), (), problem, _INDENT)


def explain_encoding_error(error: UnicodeDecodeError, content: bytes, name: str) -> Problem:
    """Return the problem of bytes that are not UTF-8."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return make_problem(FilePosition(name), (), "the file is UTF-16, not UTF-8", "save it as UTF-8")
    before = content[: error.start].decode("utf-8", "replace")
    column = len(before) - (before.rfind("\n") + 1) + 1
    position = FilePosition(name, before.count("\n") + 1, column)
    problem = f"byte 0x{content[error.start]:02x} is not UTF-8"
    return make_problem(position, (), problem, "save the file as UTF-8")


def _explain_character(error: yaml.reader.ReaderError, text: str, name: str) -> Problem:
    before = text[: error.position]
    position = FilePosition(name, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
    character = quote_text(text[error.position : error.position + 1])
    return make_problem(position, (), f"a control character that YAML does not allow: {character}", "remove it")
