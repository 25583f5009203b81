"""Add a host to the text of a pool.yml, or remove one: every other character stays as its author wrote it.

A library that writes YAML back (ruamel.yaml 0.19, with its round trip) moves the list items, the comments and the
spaces of 23 of the 44 lines of pool.yml.example. So this module inserts or cuts lines at the positions that PyYAML
reports, and then reads the result again. It never returns a text whose content is not the expected one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import yaml

from riseml.base.errors import Conflict

HostEntry = Mapping[str, object]
"""One host as pool.yml writes it: `{"name": "gpu1", "url": "ssh://me@gpu1", "gpus": "all"}`."""

_HEAD = "# The Docker hosts that experiments may use; `riseml docs pool-yml` explains every key.\nhosts:\n"
_PLAIN = re.compile(r"[A-Za-z0-9/~][A-Za-z0-9/_.:@+=-]*[A-Za-z0-9/_.@+=-]|[A-Za-z0-9/]")


class UneditableFile(Conflict):
    """The text has a form that this module cannot change safely; the user has to edit the file."""


def add_host(text: str, entry: HostEntry) -> str:
    """Return the text with one more host at the end of its list; an empty text becomes a whole file.

    Raises:
        UneditableFile: the text is written in a form in which no line can be added safely.
    """
    if not text.strip():
        return text + _HEAD + _write_block(entry, "  ", "\n")
    hosts = _find_hosts(text)
    fresh = _add_in_brackets(text, hosts, entry) if hosts.flow_style else _add_lines(text, hosts, entry)
    expected = [
        *(_read_plainly(item) for item in hosts.value),
        _read_plainly(_compose(json.dumps(entry, ensure_ascii=False))),
    ]
    _check_result(text, fresh, expected)
    return fresh


def remove_host(text: str, index: int) -> str:
    """Return the text without one of its hosts. Comments inside its lines go with it, those above it stay.

    Raises:
        UneditableFile: the text is written in a form in which the host cannot be cut out safely.
    """
    hosts = _find_hosts(text)
    start, end = _bounds_in_brackets(hosts, index) if hosts.flow_style else _bounds_of_lines(text, hosts, index)
    fresh = text[:start] + text[end:]
    _check_result(text, fresh, [_read_plainly(item) for place, item in enumerate(hosts.value) if place != index])
    return fresh


def show_entry(entry: HostEntry) -> str:
    """Return the lines of a host as they stand in a pool.yml."""
    return _write_block(entry, "  ", "\n")


def _find_hosts(text: str) -> yaml.SequenceNode:
    root = _compose(text)
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if key.value == "hosts" and isinstance(value, yaml.SequenceNode) and value.value:
                return value
    raise UneditableFile("its list of hosts cannot be found", None)


def _compose(text: str) -> yaml.Node:
    try:
        node = yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise UneditableFile("its text cannot be changed safely", None) from error
    if node is None:
        raise UneditableFile("it holds nothing", None)
    return node


def _check_result(before: str, after: str, hosts: Sequence[object]) -> None:
    """Check that a changed text has exactly these hosts, and that everything else in it has the same content as before.

    Raises:
        UneditableFile: the hosts or the rest differ.
    """
    tree = _read_plainly(_compose(before))
    edited_tree = _read_plainly(_compose(after))
    if not isinstance(tree, dict) or edited_tree != {**tree, "hosts": list(hosts)}:
        raise UneditableFile("its text cannot be changed safely", None)


def _read_plainly(node: yaml.Node) -> object:
    """Return a node as texts, lists and maps; what YAML makes of a text is the same in both versions."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _read_plainly(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_read_plainly(item) for item in node.value]
    return node.value


def _add_in_brackets(text: str, hosts: yaml.SequenceNode, entry: HostEntry) -> str:
    """Add a host to a list in brackets; JSON, because a file of brackets may be JSON."""
    last = hosts.value[-1]
    begin = text.rfind("\n", 0, last.start_mark.index) + 1
    lead = text[begin : last.start_mark.index]
    separator = f",\n{lead}" if begin and lead.isspace() else ", "
    end = last.end_mark.index
    return f"{text[:end]}{separator}{json.dumps(entry, ensure_ascii=False)}{text[end:]}"


def _add_lines(text: str, hosts: yaml.SequenceNode, entry: HostEntry) -> str:
    """Add a host below the last one, indented as it is, with an empty line before it if there is one there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    column = hosts.start_mark.column
    last = hosts.value[-1]
    start = _find_line(text, _find_dash(text, hosts, len(hosts.value) - 1))
    apart = len(hosts.value) > 1 and not _line_before(text, start).strip()
    end = _end_of_item(text, last, column)
    head = "" if text[:end].endswith("\n") else newline
    block = _write_block(entry, " " * column, newline)
    return f"{text[:end]}{head}{newline if apart else ''}{block}{text[end:]}"


def _bounds_in_brackets(hosts: yaml.SequenceNode, index: int) -> tuple[int, int]:
    """Return where a host in brackets begins and ends, with one comma."""
    items = hosts.value
    if index:
        return items[index - 1].end_mark.index, items[index].end_mark.index
    return items[0].start_mark.index, items[1].start_mark.index if len(items) > 1 else items[0].end_mark.index


def _bounds_of_lines(text: str, hosts: yaml.SequenceNode, index: int) -> tuple[int, int]:
    """Return where the lines of a host begin and end, with one of two empty lines around them."""
    start = _find_line(text, _find_dash(text, hosts, index))
    end = _end_of_item(text, hosts.value[index], hosts.start_mark.column)
    following = text[end : _end_of_line(text, end)]
    before = _line_before(text, start)
    if following and not following.strip() and (not before.strip() or not index):
        end += len(following)
    return start, end


def _find_dash(text: str, hosts: yaml.SequenceNode, index: int) -> int:
    """Return the position of the dash of a host, which may be above its first key."""
    first = _end_of_leaves(hosts.value[index - 1]) if index else hosts.start_mark.index
    column = hosts.start_mark.column
    at = hosts.value[index].start_mark.index
    while at > first:
        line = _find_line(text, at)
        if text[line + column : line + column + 1] == "-" and not text[line : line + column].strip():
            return line + column
        at = line - 1
    return max(first, 0)


def _end_of_item(text: str, item: yaml.Node, column: int) -> int:
    """Return the end of the lines of a host, with the comments below it that are indented as its keys."""
    end = _end_of_line(text, _end_of_leaves(item))
    while end < len(text):
        line = text[end : _end_of_line(text, end)]
        if not line.lstrip().startswith("#") or len(line) - len(line.lstrip()) <= column:
            break
        end += len(line)
    return end


def _end_of_leaves(node: yaml.Node) -> int:
    """Return where the text of a node ends; PyYAML ends a map or list in lines only where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        pairs = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
        return max(_end_of_leaves(part) for part in pairs)
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return int(node.end_mark.index) - 1  # its mark is at the beginning of the next line
    return int(node.end_mark.index)


def _find_line(text: str, at: int) -> int:
    """Return where the line of a position begins."""
    return text.rfind("\n", 0, at) + 1


def _end_of_line(text: str, at: int) -> int:
    """Return where the next line begins."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _line_before(text: str, line: int) -> str:
    return text[_find_line(text, line - 1) : line] if line else ""


def _write_block(entry: HostEntry, indent: str, newline: str) -> str:
    lines = [f"{key}: {_write_value(value)}" for key, value in entry.items()]
    return "".join(f"{indent}{'- ' if not place else '  '}{line}{newline}" for place, line in enumerate(lines))


def _write_value(value: object) -> str:
    """Return a value on one line: lists and maps in brackets, texts without quotes where YAML reads them as texts."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_write_value(key)}: {_write_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_write_value, value)) + "]"
    if isinstance(value, str):
        # `1.10` and `true` need quotes to be read as texts
        plain = _PLAIN.fullmatch(value) is not None and yaml.safe_load(value) == value
        return value if plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
