"""YAML text to a tree of nodes that know where they stand. Safe with any input, and quick to refuse.

Only the event stream of PyYAML's pure-Python loader is used: nothing is constructed, so a scalar keeps its source
text (`012` stays `012`), and limits are checked before anything grows. The C loader is not used, because deep nesting
ends it with a segmentation fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from riseml.spec.scalars.placeholders import find_placeholders
from riseml.spec.scalars.texts import quote_text
from riseml.spec.yaml.problems import FilePosition, KeyPath, Problem, make_problem
from riseml.spec.yaml.syntax import explain_encoding_error, explain_syntax_error

MAX_BYTES = 2**20
MAX_DEPTH = 20
MAX_NODES = 10_000
_LINE_END = re.compile(r"(?<!\\)((?:\\\\)*\\)[ \t]*\n")  # an odd number of backslashes
_FIRST = "`riseml init` writes a first riseml.yml"
_NULL = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A text. `style` is how it is written: nothing (plain), `'`, `"`, `|` or `>`.

    `spots` are the places of the `{{placeholders}}` in it; none when they cannot be told. `continued` are the indices
    of backslashes that stand at a line's end in the source, where YAML has made one line of several.
    """

    position: FilePosition
    text: str
    style: str = ""
    spots: tuple[FilePosition, ...] = ()
    continued: tuple[int, ...] = ()

    @property
    def plain(self) -> bool:
        """True when it is written without quotes, so that YAML may read it as something else than a text."""
        return not self.style

    @property
    def empty(self) -> bool:
        """True for a value that YAML calls null: nothing, `~`, or `null` without quotes."""
        return self.plain and self.text in _NULL


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A list; `flow` when it is written in brackets."""

    position: FilePosition
    items: tuple[Node, ...]
    flow: bool = False


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """One key and its value."""

    key: ScalarNode
    value: Node


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A map; every key is there once."""

    position: FilePosition
    entries: tuple[MappingEntry, ...]

    def get(self, key: str) -> Node | None:
        """The value of a key, None when there is none."""
        return next((entry.value for entry in self.entries if entry.key.text == key), None)


Node = ScalarNode | SequenceNode | MappingNode


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed text; `root` is None when it could not be read at all."""

    root: Node | None
    problems: tuple[Problem, ...] = ()


class _Refused(Exception):
    """Reading cannot go on; carries the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def parse_document(content: str | bytes, name: str, first: str = _FIRST, most: int = MAX_NODES) -> Document:
    """Read one YAML document. Never raises for any content.

    Args:
        content: the text; bytes must be UTF-8.
        name: the file that problems are shown with.
        first: what helps somebody whose file is empty.
        most: how many values the file may hold.
    """
    text, problem = _decode(content, name)
    if problem is not None:
        return Document(None, (problem,))
    composer = None
    try:
        composer = _Composer(yaml.SafeLoader(text), text, name, first, most)
        root = composer.document()
    except yaml.YAMLError as error:
        problem = explain_syntax_error(error, text, name)
    except (ValueError, OverflowError):  # PyYAML itself stumbles over "\UFFFFFFFF" and over endless digits in %YAML
        position = FilePosition(name) if composer is None else composer.here()
        problem = make_problem(position, (), "an escape or a number near this line stands for nothing", "correct it")
    except _Refused as refused:
        problem = refused.problem
    else:
        return Document(root, tuple(composer.problems))
    return Document(None, (*(() if composer is None else composer.problems), problem))


def _decode(content: str | bytes, name: str) -> tuple[str, Problem | None]:
    if len(content) > MAX_BYTES:
        size = f"{len(content) / 2**20:.1f} MiB"
        return "", make_problem(FilePosition(name), (), f"the file is too large: {size}; at most 1 MiB is read")
    if isinstance(content, str):
        return content, None
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        return "", explain_encoding_error(error, content, name)


@dataclass(slots=True)
class _Composer:
    """Builds nodes from events. `sizes` holds, for each anchor, its node and how many nodes it stands for."""

    loader: Any  # a yaml.SafeLoader; PyYAML's stubs leave its methods and its events untyped
    text: str
    file: str
    first: str
    most: int
    problems: list[Problem] = field(default_factory=list)
    sizes: dict[str, tuple[Node, int]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    nodes: int = 0

    def document(self) -> Node | None:
        self._next()  # the start of the stream
        if isinstance(self.loader.peek_event(), yaml.StreamEndEvent):
            raise _Refused(make_problem(FilePosition(self.file), (), "the file is empty", self.first))
        self._next()  # the start of the document
        root = self._node((), 1)
        self._next()  # its end
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._refuse(
                after, (), "a second document begins here", "keep one document in the file, without `---`"
            )
        return root

    def here(self) -> FilePosition:
        """How far the text has been read."""
        return FilePosition(self.file, self.loader.line + 1, self.loader.column + 1)

    def _next(self) -> Any:
        return self.loader.get_event()

    def _node(self, path: KeyPath, depth: int) -> Node:
        event = self._next()
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        self._count(event, path, 1)
        self._forbid(event, path, depth)
        before = self.nodes
        if event.anchor:
            self.open.add(event.anchor)
        node = self._content(event, path, depth)
        if event.anchor:
            self.open.discard(event.anchor)
            self.sizes[event.anchor] = (node, self.nodes - before + 1)
        return node

    def _content(self, event: Any, path: KeyPath, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            style = event.style or ""
            return ScalarNode(self._position_of(event), event.value, style, self._spots(event), self._continued(event))
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(self.loader.peek_event(), yaml.SequenceEndEvent):
                items.append(self._node((*path, len(items)), depth + 1))
            self._next()
            return SequenceNode(self._position_of(event), tuple(items), bool(event.flow_style))
        entries = tuple(self._entries(path, depth))
        self._next()
        return MappingNode(self._position_of(event), entries)

    def _entries(self, path: KeyPath, depth: int) -> Iterator[MappingEntry]:
        seen: dict[str, ScalarNode] = {}
        while not isinstance(self.loader.peek_event(), yaml.MappingEndEvent):
            key = self._key(path, depth)
            value = self._node((*path, key.text), depth + 1)
            first = seen.setdefault(key.text, key)
            if first is key:
                yield MappingEntry(key, value)
                continue
            problem = f"the key is there twice: on line {first.position.line} and on line {key.position.line}"
            self.problems.append(make_problem(key.position, (*path, key.text), problem, "keep one of them"))

    def _key(self, path: KeyPath, depth: int) -> ScalarNode:
        event = self.loader.peek_event()
        if isinstance(event, yaml.MappingStartEvent) and event.flow_style:
            problem = "a value that begins with { is a map for YAML"
            raise self._refuse(event, path, problem, 'put the whole value into quotes: "{{name}} ..."')
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            raise self._refuse(event, path, "a key must be a plain text, not a list or a map")
        node = self._node(path, depth + 1)
        if not isinstance(node, ScalarNode):
            raise self._refuse(event, path, "a key must be a plain text, not a list or a map")
        if node.plain and node.text == "<<":
            raise self._refuse(event, path, "merge keys (<<) are not read", "write the keys out")
        return node

    def _alias(self, event: Any, path: KeyPath) -> Node:
        name = event.anchor
        if name in self.open:
            raise self._refuse(event, path, f"*{name} contains itself", "write the value out")
        if name not in self.sizes:
            hint = f'a text that begins with * needs quotes: "*{name}"'
            raise self._refuse(event, path, f"there is no anchor &{name} before this", hint)
        node, size = self.sizes[name]
        self._count(event, path, size)
        return node

    def _count(self, event: Any, path: KeyPath, size: int) -> None:
        self.nodes += size
        if self.nodes > self.most:
            raise self._refuse(event, path, f"the file holds more than {self.most:,} values (aliases count in full)")

    def _forbid(self, event: Any, path: KeyPath, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._refuse(event, path[:3], f"nested more than {MAX_DEPTH} levels deep")
        tag = getattr(event, "tag", None)
        if tag is not None:
            shown = quote_text(tag.replace("tag:yaml.org,2002:", "!!"))
            hint = "leave the tag out; a text that begins with ! needs quotes"
            raise self._refuse(event, path, f"YAML tags are not read: {shown}", hint)

    def _refuse(self, event: Any, path: KeyPath, problem: str, hint: str = "") -> _Refused:
        return _Refused(make_problem(self._position_of(event), path, problem, hint))

    def _position_of(self, event: Any) -> FilePosition:
        mark = event.start_mark
        return FilePosition(self.file, mark.line + 1, mark.column + 1)

    def _spots(self, event: Any) -> tuple[FilePosition, ...]:
        """Where the placeholders stand in the source, when they can be found there one by one; else nothing."""
        if "{{" not in event.value:
            return ()
        start, end = event.start_mark, event.end_mark
        raw = self.text[start.index : end.index]
        wanted = [name for name, _, _ in find_placeholders(event.value)]
        found = find_placeholders(raw)[: len(wanted)]
        if wanted != [name for name, _, _ in found]:
            return ()
        offsets = [offset for _, offset, _ in found]
        return tuple(_places(FilePosition(self.file, start.line + 1, start.column + 1), raw, offsets))

    def _continued(self, event: Any) -> tuple[int, ...]:
        """The n-th backslash of the text is the n-th of the source, when YAML has only folded lines."""
        if event.style not in (None, ">") or "\\" not in event.value:
            return ()
        raw = self.text[event.start_mark.index : event.end_mark.index]
        ends = {found.end(1) - 1 for found in _LINE_END.finditer(raw)}
        in_raw = [index for index, char in enumerate(raw) if char == "\\"]
        in_text = [index for index, char in enumerate(event.value) if char == "\\"]
        pairs = zip(in_raw, in_text, strict=False)
        return tuple(inner for outer, inner in pairs if outer in ends and event.value[inner + 1 : inner + 2] == " ")


def _places(start: FilePosition, raw: str, offsets: list[int]) -> Iterator[FilePosition]:
    """The places of ascending offsets into a source that begins at `start`."""
    line, line_start = start.line, 1 - start.column
    last = 0
    for offset in offsets:
        between = raw[last:offset]
        if "\n" in between:
            line += between.count("\n")
            line_start = last + between.rindex("\n") + 1
        last = offset
        yield FilePosition(start.file, line, offset - line_start + 1)
