"""Rewrite the riseml.yml of an earlier RiseML for this version: its text, with its comments and its order.

RiseML 0.x wrote `deploy:` or `service:` with `input`, `output` and `demo`; RiseML 1.x `ps_count: 1`, `volumes` and
`tensorboard: 'true'`. A key that riseml does not have becomes a comment, so that nothing of the file is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from riseml.base.records import dataclass
from riseml.spec.config.loader import CONFIG_NAME, check_config
from riseml.spec.config.templates import write_project_name
from riseml.spec.yaml.document import MappingEntry, MappingNode, Node, ScalarNode, parse_document
from riseml.spec.yaml.problems import Severity
from riseml.spec.yaml.writing import write_document

_MOST_CHANGES = 500  # of one file; more are a fault of the conversion
_SECTIONS = ("train", "deploy", "service")
_SERVED = frozenset({"input", "output", "demo"})
_RUN = ("commands", "command")
_AMOUNTS = ("cpus", "mem", "gpus")
_ROLE_KEY = re.compile(r"(worker|ps|master|evaluator)_(count|cpus|mem|gpus)")
_TRUTH = frozenset({"true", "false"})
_UNKNOWN = "unknown key"
_REASONS = {
    "deploy": "riseml serves no models",
    "service": "riseml serves no models",
    "input": "riseml serves no models",
    "output": "riseml serves no models",
    "demo": "riseml serves no models",
    "volumes": "jobs read the data folder at {{data_dir}}; `train.data` fetches data from a store",
}


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """A riseml.yml for this version."""

    text: str
    changes: tuple[str, ...]  # what was rewritten, as sentences; empty: the file is as it was
    left_out: tuple[str, ...]  # keys that are comments now, each with the reason


def convert_earlier_file(text: str, folder: str) -> ConvertedFile:
    """Return a file of any RiseML as one of this version, as far as it can be converted. The caller checks the result.

    Args:
        text: of the file.
        folder: name of the project's folder, for a file that names no project.

    Example: `convert_earlier_file("deploy: {run: python t.py}", "toaster").text` begins with `project: toaster`.
    """
    conversion = _Conversion(_write_blocks(text), folder)
    has_blocks_written = conversion.text != text
    if has_blocks_written:
        conversion.changes.append("maps in braces are written as blocks, without the comments of the file")
    rules: tuple[Callable[[_Conversion], bool], ...] = (
        _name_section,
        _wrap_in_train,
        _name_project,
        _comment_served_keys,
        _name_run,
        _gather_resources,
        _write_role_counts,
        _gather_distributed,
        _write_truth,
        _add_image,
        _comment_unknown_keys,
    )
    for _ in range(_MOST_CHANGES):
        if not isinstance(conversion.root, MappingNode) or not any(rule(conversion) for rule in rules):
            break
    if len(conversion.changes) == has_blocks_written and not conversion.left_out:
        return ConvertedFile(text, (), ())
    return ConvertedFile(conversion.text, tuple(conversion.changes), tuple(conversion.left_out))


@dataclass(slots=True)
class _Conversion:
    """A file between two steps of its conversion, and what the steps so far have done."""

    text: str
    folder: str  # name of the project's folder
    changes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    _parsed: tuple[str, Node | None] = ("", None)  # a text and its tree

    @property
    def root(self) -> Node | None:
        """The tree of the text; None: it is not YAML."""
        if self._parsed[0] != self.text:
            self._parsed = (self.text, parse_document(self.text, CONFIG_NAME).root)
        return self._parsed[1]

    def mapping(self, *path: str) -> MappingNode | None:
        """Return the map at a path; None: there is none."""
        node = self.root
        for key in path:
            node = node.get(key) if isinstance(node, MappingNode) else None
        return node if isinstance(node, MappingNode) else None

    def entries(self, *path: str) -> tuple[MappingEntry, ...]:
        """Return the keys of the map at a path."""
        mapping = self.mapping(*path)
        return mapping.entries if mapping is not None else ()

    def find(self, path: Sequence[str], names: Iterable[str]) -> MappingEntry | None:
        """Return the first key of a map with one of some names."""
        return next((entry for entry in self.entries(*path) if entry.key.text in names), None)

    def lines(self) -> list[str]:
        """Return the lines, each with its end."""
        return self.text.splitlines(keepends=True)

    def block(self, entry: MappingEntry) -> tuple[int, int]:
        """Return the lines of a key with its value, from the first one up to the first one behind it."""
        lines = self.lines()
        first = last = entry.key.position.line - 1
        column = entry.key.position.column - 1
        for index in range(first + 1, len(lines)):
            content = lines[index].strip()
            indent = len(lines[index]) - len(lines[index].lstrip())
            if not content or (content.startswith("#") and indent <= column):
                continue  # it belongs to what follows, unless a line of this value does
            if indent < column or (indent == column and not content.startswith("- ") and content != "-"):
                break
            last = index
        return first, last + 1

    def replace_block(self, entry: MappingEntry, change: Callable[[list[str]], list[str]]) -> None:
        """Change the lines of a key."""
        lines = self.lines()
        first, end = self.block(entry)
        self.text = "".join([*lines[:first], *change(_end_lines(lines[first:end])), *lines[end:]])

    def has_own_line(self, entry: MappingEntry) -> bool:
        """Return True for a key that begins its line; one inside of braces does not."""
        place = entry.key.position
        return not self.lines()[place.line - 1][: place.column - 1].strip()

    def rename(self, entry: MappingEntry, name: str) -> None:
        """Give a key another name."""
        place = entry.key.position
        written = re.escape(entry.key.source or entry.key.text)
        lines = self.lines()
        start = lines[place.line - 1][: place.column - 1]
        renamed = re.sub(rf"^{written}", lambda _: name, lines[place.line - 1][place.column - 1 :])
        lines[place.line - 1] = start + renamed
        self.text = "".join(lines)
        self.changes.append(f"`{entry.key.text}` is `{name}` now")

    def comment_out(self, entry: MappingEntry, reason: str) -> None:
        """Make a key with its value a comment."""
        column = entry.key.position.column - 1
        self.replace_block(entry, lambda lines: [_comment(text, column) for text in lines])
        self.left_out.append(f"`{entry.key.text}` is a comment now: {reason}")

    def gather(self, entries: Sequence[MappingEntry], name: str) -> None:
        """Put keys of one map below a new key, at the place of the first one."""
        lines = self.lines()
        column = entries[0].key.position.column - 1
        blocks = [range(*self.block(entry)) for entry in entries]
        moved = [_indent(text) for block in blocks for text in _end_lines([lines[index] for index in block])]
        moved_lines = {index for block in blocks for index in block}
        head = [text for index, text in enumerate(lines[: blocks[0].start]) if index not in moved_lines]
        tail = [text for index, text in enumerate(lines) if index >= blocks[0].start and index not in moved_lines]
        self.text = "".join([*_end_lines(head), f"{' ' * column}{name}:\n", *moved, *tail])
        names = ", ".join(f"`{entry.key.text}`" for entry in entries)
        self.changes.append(f"{names} {'is' if len(entries) == 1 else 'are'} below `{name}` now")

    def insert(self, line: int, text: str) -> None:
        """Add a line before another one, which is counted from 1."""
        lines = _end_lines(self.lines())
        self.text = "".join([*lines[: line - 1], text, *lines[line - 1 :]])


def _name_section(conversion: _Conversion) -> bool:
    """Name the section of an earlier generation `train`."""
    if conversion.find((), ("train",)):
        return False
    entry = next((entry for entry in conversion.entries() if entry.key.text in _SECTIONS), None)
    if entry is None or not isinstance(entry.value, MappingNode):
        return False
    conversion.rename(entry, "train")
    return True


def _wrap_in_train(conversion: _Conversion) -> bool:
    """Put the keys of a file without sections below `train`."""
    if conversion.find((), ("train",)):
        return False
    outer_keys = {"project", "name", "service", *_SERVED, "deploy", "volumes"}
    entries = [entry for entry in conversion.entries() if entry.key.text not in outer_keys]
    if not entries:
        return False
    conversion.gather(entries, "train")
    return True


def _name_project(conversion: _Conversion) -> bool:
    """Give the file a project."""
    if conversion.find((), ("project",)):
        return False
    for entry in conversion.entries():
        if entry.key.text in ("name", "service") and isinstance(entry.value, ScalarNode) and not entry.value.empty:
            conversion.rename(entry, "project")
            return True
    entries = conversion.entries()
    conversion.insert(
        entries[0].key.position.line if entries else 1, f"project: {write_project_name(conversion.folder)}\n"
    )
    conversion.changes.append("`project` is the name of the folder")
    return True


def _comment_served_keys(conversion: _Conversion) -> bool:
    """Make comments of what served a model, and of volumes."""
    names = {*_SERVED, "volumes"}
    for path, chosen in (((), names | {"deploy", "service"}), (("train",), names)):
        entry = conversion.find(path, chosen)
        if entry is not None:
            conversion.comment_out(entry, _REASONS[entry.key.text])
            return True
    return False


def _name_run(conversion: _Conversion) -> bool:
    """Name the commands `run`."""
    entry = conversion.find(("train",), _RUN)
    if entry is None or conversion.find(("train",), ("run",)):
        return False
    conversion.rename(entry, "run")
    return True


def _gather_resources(conversion: _Conversion) -> bool:
    """Put amounts of `train` below `resources`."""
    entries = [entry for entry in conversion.entries("train") if entry.key.text in _AMOUNTS]
    if not entries or conversion.find(("train",), ("resources",)):
        return False
    conversion.gather(entries, "resources")
    return True


def _write_role_counts(conversion: _Conversion) -> bool:
    """Write `ps_count: 1`, `ps_cpus: 2` as the role `ps`."""
    for path in (("train", "tensorflow", "distributed"), ("train", "tensorflow")):
        names = {entry.key.text for entry in conversion.entries(*path)}
        for entry in conversion.entries(*path):
            match = _ROLE_KEY.fullmatch(entry.key.text)
            if match is None or match[1] in names:
                continue
            parts = [part for part in conversion.entries(*path) if part.key.text.startswith(f"{match[1]}_")]
            parts = [part for part in parts if _ROLE_KEY.fullmatch(part.key.text)]
            _write_role(conversion, match[1], parts)
            return True
    return False


def _write_role(conversion: _Conversion, role: str, parts: list[MappingEntry]) -> None:
    """Replace the keys of a role by one: its count alone, or a map with `count` and `resources`."""
    if len(parts) == 1 and parts[0].key.text == f"{role}_count":
        conversion.rename(parts[0], role)
        return
    lines = conversion.lines()
    margin = " " * (parts[0].key.position.column - 1)
    written = [f"{margin}{role}:\n"]
    for part in parts:
        if part.key.text.endswith("_count"):
            written += _shorten_key(conversion, part, role, 1)
    written.append(f"{margin}  resources:\n")
    for part in parts:
        if not part.key.text.endswith("_count"):
            written += _shorten_key(conversion, part, role, 2)
    moved_lines = {index for part in parts for index in range(*conversion.block(part))}
    head = [text for index, text in enumerate(lines) if index < min(moved_lines)]
    tail = [text for index, text in enumerate(lines) if index > min(moved_lines) and index not in moved_lines]
    conversion.text = "".join([*head, *written, *tail])
    conversion.changes.append(f"{', '.join(f'`{part.key.text}`' for part in parts)} are `{role}` now")


def _shorten_key(conversion: _Conversion, part: MappingEntry, role: str, depth: int) -> list[str]:
    """Return the lines of `ps_cpus: 2` as `cpus: 2`, some levels deeper."""
    first, *more = _end_lines(conversion.lines()[slice(*conversion.block(part))])
    renamed = first.replace(part.key.text, part.key.text.removeprefix(f"{role}_"), 1)
    return ["  " * depth + text for text in (renamed, *more)]


def _gather_distributed(conversion: _Conversion) -> bool:
    """Put the roles of `tensorflow` below `distributed`."""
    path = ("train", "tensorflow")
    entries = [
        entry for entry in conversion.entries(*path) if entry.key.text in ("worker", "ps", "master", "evaluator")
    ]
    if not entries or conversion.find(path, ("distributed",)):
        return False
    conversion.gather(entries, "distributed")
    return True


def _write_truth(conversion: _Conversion) -> bool:
    """Write `tensorboard: 'true'` without quotes."""
    entry = conversion.find(("train", "tensorflow"), ("tensorboard",))
    if entry is None or not isinstance(entry.value, ScalarNode) or not entry.value.style:
        return False
    truth = entry.value.text.strip().lower()
    if truth not in _TRUTH:
        return False
    place = entry.value.position
    lines = conversion.lines()
    line = lines[place.line - 1]
    lines[place.line - 1] = line[: place.column - 1] + line[place.column - 1 :].replace(entry.value.source, truth, 1)
    if "".join(lines) == conversion.text:
        return False
    conversion.text = "".join(lines)
    conversion.changes.append(f"`tensorboard` is {truth} without quotes")
    return True


def _add_image(conversion: _Conversion) -> bool:
    """Give the jobs an image where the file names none."""
    entries = conversion.entries("train")
    if not entries or conversion.find(("train",), ("image", "framework", "roles")):
        return False
    place = entries[0].key.position
    conversion.insert(place.line, f"{' ' * (place.column - 1)}image: python:3.11\n")
    conversion.changes.append("`image` is python:3.11, because the file names none")
    return True


def _comment_unknown_keys(conversion: _Conversion) -> bool:
    """Make a comment of the first key that riseml does not have."""
    problems = check_config(conversion.text).problems
    unknown = [problem for problem in problems if problem.problem == _UNKNOWN and problem.severity is Severity.ERROR]
    places = {(problem.line, problem.column): problem for problem in unknown}
    for entry in _list_entries(conversion.root):
        problem = places.get((entry.key.position.line, entry.key.position.column))
        if problem is not None and conversion.has_own_line(entry):
            reason = f"riseml has no {problem.path}"
            is_near = problem.hint.startswith("did you mean")
            conversion.comment_out(entry, f"{reason}; {problem.hint}" if is_near else reason)
            return True
    return False


def _list_entries(node: Node | None) -> list[MappingEntry]:
    if not isinstance(node, MappingNode):
        return []
    return [inner for entry in node.entries for inner in (entry, *_list_entries(entry.value))]


def _write_blocks(text: str) -> str:
    """Return the text with its sections as blocks of lines: a map in braces has no lines of its own for its keys."""
    root = parse_document(text, CONFIG_NAME).root
    if not isinstance(root, MappingNode):
        return text
    lines = text.splitlines()
    for entry in (MappingEntry(ScalarNode(root.position, ""), root), *_list_entries(root)):
        place = entry.value.position
        if isinstance(entry.value, MappingNode) and entry.value.entries and lines[place.line - 1 :]:
            is_flow = lines[place.line - 1][place.column - 1 :].startswith("{")
            if is_flow and _needs_lines(entry):
                return write_document(root)
    return text


def _needs_lines(entry: MappingEntry) -> bool:
    """Return True for a map whose keys the conversion may rename, move or make comments."""
    names = {"", *_SECTIONS, "tensorflow", "distributed"}
    return entry.key.text in names


def _comment(line: str, column: int) -> str:
    """Return a line as a comment that begins at a column."""
    if not line.strip():
        return line
    cut = min(column, len(line) - len(line.lstrip()))
    return f"{line[:cut]}# {line[cut:]}"


def _indent(line: str) -> str:
    return f"  {line}" if line.strip() else line


def _end_lines(lines: list[str]) -> list[str]:
    """Return lines that all have an end."""
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]
