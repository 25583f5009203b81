"""YAML text to a tree of nodes with their positions.

This module builds the tree from the events of PyYAML's pure-Python parser instead of calling `yaml.safe_load`:
- A node needs its line and column, and a scalar its source text: `012` and `1.10` stay as written.
- Depth, number of values and size of aliases are checked before the tree grows. A file of `[` is refused at level 21;
  `yaml.load` with the C loader ends with a segmentation fault on 200,000 of them (PyYAML 6.0.3).
- It costs nothing: the riseml.yml of examples/ai-toaster takes 0.9 ms here and 0.9 ms in `yaml.safe_load` (best of 30
  calls in one process, Python 3.11 on one core of an AMD EPYC).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import yaml

from riseml.base.records import dataclass
from riseml.spec.scalars.placeholders import find_placeholders
from riseml.spec.scalars.texts import quote_text
from riseml.spec.yaml.problems import FilePosition, KeyPath, Problem, make_problem
from riseml.spec.yaml.syntax import explain_encoding_error, explain_syntax_error

MAX_BYTES = 2**20  # largest file
MAX_DEPTH = 20  # levels of nesting
MAX_NODES = 10_000  # values in a file, each alias counted in full
_LINE_END = re.compile(r"(?<!\\)((?:\\\\)*\\)[ \t]*\n")  # an odd number of backslashes
_LONGEST_WORD = 40  # characters by which a word is found again
_FIRST = "`riseml init` writes a starter riseml.yml"
_LONGEST_NUMBER = 256  # characters; Python makes no float of 174 sexagesimal parts, and prints no int of 4,301 digits
_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One text: a value or a key."""

    position: FilePosition
    text: str
    style: str = ""  # how it is written: empty (plain), `'`, `"`, `|` or `>`
    spots: tuple[FilePosition, ...] = ()  # the places of its `{{placeholders}}`; empty: the source does not show them
    continued: tuple[int, ...] = ()  # indices of backslashes that end a line in the source, where YAML joins lines
    source: str = field(default="", repr=False, compare=False)  # how it is written; empty: not in a file

    @property
    def plain(self) -> bool:
        """True when it is written without quotes, so that YAML may read it as a number, a boolean or null."""
        return not self.style

    @property
    def empty(self) -> bool:
        """True for YAML's null: nothing, `~`, or `null` without quotes."""
        return self.plain and self.text in _NULL


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A list."""

    position: FilePosition
    items: tuple[Node, ...]
    flow: bool = False  # written in brackets


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """One key and its value."""

    key: ScalarNode
    value: Node


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A map. Its keys are unique."""

    position: FilePosition
    entries: tuple[MappingEntry, ...]

    def get(self, key: str) -> Node | None:
        """Return the value of a key; None when the map does not have it."""
        return next((entry.value for entry in self.entries if entry.key.text == key), None)


Node = ScalarNode | SequenceNode | MappingNode


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file."""

    root: Node | None  # None: the text is not YAML
    problems: tuple[Problem, ...] = ()


class _UnreadableDocument(Exception):
    """Parsing cannot continue; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def parse_document(
    content: str | bytes, name: str, first: str = _FIRST, most: int = MAX_NODES, *, merges: bool = False
) -> Document:
    """Parse one YAML document. Content never makes it raise; problems are in the result.

    Args:
        content: the text; bytes must be UTF-8.
        name: the file's name in messages.
        first: the hint for an empty file.
        most: how many values the file may have.
        merges: whether merge keys (`<<`) are keys like others, which the caller reads by itself.
    """
    text, problem = _decode(content, name)
    if problem is not None:
        return Document(None, (problem,))
    composer = None
    try:
        composer = _Composer(yaml.SafeLoader(text), text, name, first, most, merges)
        root = composer.compose_document()
    except yaml.YAMLError as error:
        problem = explain_syntax_error(error, text, name)
    except (ValueError, OverflowError):  # PyYAML raises them for "\UFFFFFFFF" and for thousands of digits in %YAML
        position = FilePosition(name) if composer is None else composer.here()
        problem = make_problem(position, (), "invalid escape sequence or number near this line", "correct it")
    except _UnreadableDocument as refused:
        problem = refused.problem
    else:
        return Document(root, tuple(composer.problems))
    return Document(None, (*(() if composer is None else composer.problems), problem))


def _decode(content: str | bytes, name: str) -> tuple[str, Problem | None]:
    if len(content) > MAX_BYTES:
        size = f"{len(content) / 2**20:.1f} MiB"
        return "", make_problem(FilePosition(name), (), f"the file is too large: {size}; at most 1 MiB is allowed")
    if isinstance(content, str):
        return content, None
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        return "", explain_encoding_error(error, content, name)


@dataclass(slots=True)
class _Composer:
    """Builds nodes from the events of one parser."""

    loader: Any  # a yaml.SafeLoader; the stubs of PyYAML leave its methods and events untyped
    text: str  # the whole file
    file: str  # its name in messages
    first: str  # the hint for an empty file
    most: int  # values that the file may have
    merges: bool = False  # a key `<<` is one like others
    problems: list[Problem] = field(default_factory=list)
    sizes: dict[str, tuple[Node, int]] = field(default_factory=dict)  # anchor -> its node, and how many values that is
    open: set[str] = field(default_factory=set)  # anchors whose node is not complete yet
    nodes: int = 0  # values so far, each alias counted in full

    def compose_document(self) -> Node | None:
        self._read_event()  # the start of the stream
        if isinstance(self.loader.peek_event(), yaml.StreamEndEvent):
            raise _UnreadableDocument(make_problem(FilePosition(self.file), (), "the file is empty", self.first))
        self._read_event()  # the start of the document
        root = self._compose_node((), 1)
        self._read_event()  # its end
        after = self._read_event()
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._refuse_event(
                after, (), "a second document begins here", "keep only one document, without `---`"
            )
        return root

    def here(self) -> FilePosition:
        """Return the position up to which the parser has read."""
        return FilePosition(self.file, self.loader.line + 1, self.loader.column + 1)

    def _read_event(self) -> Any:
        return self.loader.get_event()

    def _compose_node(self, path: KeyPath, depth: int) -> Node:
        event = self._read_event()
        if isinstance(event, yaml.AliasEvent):
            return self._resolve_alias(event, path)
        self._count_values(event, path, 1)
        self._check_depth_and_tag(event, path, depth)
        before = self.nodes
        if event.anchor:
            self.open.add(event.anchor)
        node = self._compose_content(event, path, depth)
        if event.anchor:
            self.open.discard(event.anchor)
            self.sizes[event.anchor] = (node, self.nodes - before + 1)
        return node

    def _compose_content(self, event: Any, path: KeyPath, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            style = event.style or ""
            self._check_number(event, path)
            return ScalarNode(
                self._position_of(event),
                event.value,
                style,
                self._placeholder_positions(event),
                self._continued_lines(event),
                self._raw_text(event),
            )
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(self.loader.peek_event(), yaml.SequenceEndEvent):
                items.append(self._compose_node((*path, len(items)), depth + 1))
            self._read_event()
            return SequenceNode(self._position_of(event), tuple(items), bool(event.flow_style))
        entries = tuple(self._compose_entries(path, depth))
        self._read_event()
        return MappingNode(self._position_of(event), entries)

    def _compose_entries(self, path: KeyPath, depth: int) -> Iterator[MappingEntry]:
        keys: dict[str, ScalarNode] = {}
        while not isinstance(self.loader.peek_event(), yaml.MappingEndEvent):
            key = self._compose_key(path, depth)
            value = self._compose_node((*path, key.text), depth + 1)
            first = keys.setdefault(key.text, key)
            if first is key:
                yield MappingEntry(key, value)
                continue
            problem = f"duplicate key: on line {first.position.line} and line {key.position.line}"
            self.problems.append(make_problem(key.position, (*path, key.text), problem, "keep one of them"))

    def _compose_key(self, path: KeyPath, depth: int) -> ScalarNode:
        event = self.loader.peek_event()
        if isinstance(event, yaml.MappingStartEvent) and event.flow_style:
            problem = "YAML reads a value that begins with { as a map"
            raise self._refuse_event(event, path, problem, 'put the whole value in quotes: "{{name}} ..."')
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            raise self._refuse_event(event, path, "a key must be a string, not a list or a map")
        node = self._compose_node(path, depth + 1)
        if not isinstance(node, ScalarNode):
            raise self._refuse_event(event, path, "a key must be a string, not a list or a map")
        if node.plain and node.text == "<<" and not self.merges:
            raise self._refuse_event(event, path, "merge keys (<<) are not supported", "write the keys out")
        return node

    def _resolve_alias(self, event: Any, path: KeyPath) -> Node:
        name = event.anchor
        if name in self.open:
            raise self._refuse_event(event, path, f"*{name} contains itself", "write the value out")
        if name not in self.sizes:
            hint = f'a text that begins with * needs quotes: "*{name}"'
            raise self._refuse_event(event, path, f"there is no anchor &{name} above", hint)
        node, size = self.sizes[name]
        self._count_values(event, path, size)
        return node

    def _count_values(self, event: Any, path: KeyPath, size: int) -> None:
        self.nodes += size
        if self.nodes > self.most:
            raise self._refuse_event(
                event, path, f"the file has more than {self.most:,} values (each alias counts in full)"
            )

    def _check_depth_and_tag(self, event: Any, path: KeyPath, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._refuse_event(event, path[:3], f"nested more than {MAX_DEPTH} levels deep")
        tag = getattr(event, "tag", None)
        if tag is not None:
            tag_text = quote_text(tag.replace("tag:yaml.org,2002:", "!!"))
            hint = "remove the tag; a text that begins with ! needs quotes"
            raise self._refuse_event(event, path, f"YAML tags are not supported: {tag_text}", hint)

    def _check_number(self, event: Any, path: KeyPath) -> None:
        """Note a number that no YAML reader in Python can turn into a value, or print again."""
        size = len(event.value)
        if event.style or size <= _LONGEST_NUMBER:
            return
        if self.loader.resolve(yaml.ScalarNode, event.value, (True, False)) in _NUMBERS:
            problem = f"YAML reads these {size:,} characters as a number; a number may have {_LONGEST_NUMBER}"
            self.problems.append(make_problem(self._position_of(event), path, problem, "put a text in quotes"))

    def _refuse_event(self, event: Any, path: KeyPath, problem: str, hint: str = "") -> _UnreadableDocument:
        return _UnreadableDocument(make_problem(self._position_of(event), path, problem, hint))

    def _position_of(self, event: Any) -> FilePosition:
        mark = event.start_mark
        return FilePosition(self.file, mark.line + 1, mark.column + 1)

    def _placeholder_positions(self, event: Any) -> tuple[FilePosition, ...]:
        """Return the positions of the placeholders; empty when the source does not show the same ones."""
        if "{{" not in event.value:
            return ()
        start = event.start_mark
        end = event.end_mark
        raw = self.text[start.index : end.index]
        names = [name for name, _, _ in find_placeholders(event.value)]
        placeholders = find_placeholders(raw)[: len(names)]
        if names != [name for name, _, _ in placeholders]:
            return ()
        offsets = [offset for _, offset, _ in placeholders]
        return tuple(_offset_positions(FilePosition(self.file, start.line + 1, start.column + 1), raw, offsets))

    def _raw_text(self, event: Any) -> str:
        return self.text[event.start_mark.index : event.end_mark.index]

    def _continued_lines(self, event: Any) -> tuple[int, ...]:
        """Return the indices of backslashes that end a line in the source.

        In plain and folded texts the n-th backslash of the text is the n-th of the source.
        """
        if event.style not in (None, ">") or "\\" not in event.value:
            return ()
        raw = self.text[event.start_mark.index : event.end_mark.index]
        ends = {match.end(1) - 1 for match in _LINE_END.finditer(raw)}
        in_raw = [index for index, char in enumerate(raw) if char == "\\"]
        in_text = [index for index, char in enumerate(event.value) if char == "\\"]
        pairs = zip(in_raw, in_text, strict=False)
        return tuple(inner for outer, inner in pairs if outer in ends and event.value[inner + 1 : inner + 2] == " ")


def find_word_position(node: ScalarNode, text: str, offset: int) -> FilePosition:
    """Return the position in the file of the word that begins at an offset of a text, or else that of the whole text.

    YAML moves words and does not change them: the n-th one of the text is the n-th one of the source.

    Args:
        node: where the text is written.
        text: of the node, perhaps with other line breaks.
        offset: in characters.
    """
    word = text[offset:].split(maxsplit=1)[0][:_LONGEST_WORD]
    at = -1
    for _ in range(text.count(word, 0, offset + len(word))):
        at = node.source.find(word, at + 1 if at < 0 else at + len(word))
        if at < 0:
            return node.position
    return next(_offset_positions(node.position, node.source, [at]), node.position) if at >= 0 else node.position


def _offset_positions(start: FilePosition, raw: str, offsets: list[int]) -> Iterator[FilePosition]:
    """Yield the positions of ascending offsets into a source that begins at `start`."""
    line = start.line
    line_start = 1 - start.column
    last = 0
    for offset in offsets:
        between = raw[last:offset]
        if "\n" in between:
            line += between.count("\n")
            line_start = last + between.rindex("\n") + 1
        last = offset
        yield FilePosition(start.file, line, offset - line_start + 1)
