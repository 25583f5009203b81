"""What the command line says instead of the file: `-p lr=0.1` and `--set train.resources.gpus=2`."""

from __future__ import annotations

from dataclasses import dataclass

from riseml.spec.scalars.texts import quote_text
from riseml.spec.yaml.document import MappingEntry, MappingNode, Node, ScalarNode, parse_document
from riseml.spec.yaml.problems import FilePosition, KeyPath, Problem, make_problem


@dataclass(frozen=True, slots=True)
class Overrides:
    """Names and texts, in the order they were given; the last one of a name counts.

    A parameter's text is its value as it stands; the text of a setting (`train.resources.gpus`) is read as YAML.
    """

    parameters: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()


_DEEPEST = 20  # keys of a path, as deep as a file may be
_LONGEST_LABEL = 100


class _Refused(Exception):
    """A setting that cannot be made."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def apply_overrides(root: Node, overrides: Overrides) -> tuple[Node, tuple[Problem, ...]]:
    """The tree with every setting and parameter put in; problems name the option as their file."""
    problems: list[Problem] = []
    for name, text in overrides.settings:
        try:
            root = _put(root, _setting_path(name, text), (), _value(name, text))
        except _Refused as refused:
            problems.append(refused.problem)
    for name, text in overrides.parameters:
        position = FilePosition(_label("-p", name, text))
        try:
            root = _put(root, ("train", "parameters", name), (), ScalarNode(position, text, style='"'))
        except _Refused as refused:
            problems.append(refused.problem)
    return root, tuple(problems)


def _label(option: str, name: str, text: str) -> str:
    """The option as it was written, fit to be shown as the name of a file: one short printable line."""
    written = f"{option} {name}={text}"
    short = written if len(written) <= _LONGEST_LABEL else f"{written[:_LONGEST_LABEL]}..."
    return "".join(char if char.isprintable() else "?" for char in short)


def _setting_path(name: str, text: str) -> tuple[str, ...]:
    parts = tuple(name.split("."))
    if all(parts) and len(parts) <= _DEEPEST:
        return parts
    position = FilePosition(_label("--set", name, text))
    raise _Refused(make_problem(position, (), f"{quote_text(name)} is no path", "write it like train.resources.gpus=2"))


def _value(name: str, text: str) -> Node:
    position = FilePosition(_label("--set", name, text))
    if not text.strip():
        return ScalarNode(position, "")
    document = parse_document(text, position.file)
    if document.root is None or document.problems:
        first = document.problems[0]
        raise _Refused(make_problem(position, tuple(name.split(".")), first.problem, first.hint))
    return _placed(document.root, position)


def _placed(node: Node, position: FilePosition) -> Node:
    """The same node with all of it at one position: columns of an option tell nothing."""
    if isinstance(node, ScalarNode):
        return ScalarNode(position, node.text, node.style)
    if isinstance(node, MappingNode):
        entries = (
            MappingEntry(ScalarNode(position, entry.key.text), _placed(entry.value, position)) for entry in node.entries
        )
        return MappingNode(position, tuple(entries))
    return type(node)(position, tuple(_placed(item, position) for item in node.items))


def _put(node: Node | None, path: tuple[str, ...], above: KeyPath, value: Node) -> Node:
    """The node with `value` at `path`; sections that are missing on the way are made."""
    if not path:
        return value
    if node is None or (isinstance(node, ScalarNode) and (node.empty or node.text == "false")):
        node = MappingNode(value.position, ())
    if not isinstance(node, MappingNode):
        what = "a text" if isinstance(node, ScalarNode) else "a list"
        hint = "give the whole value" if above else ""
        problem = f"has nothing below it in {node.position.file}: it is {what}"
        raise _Refused(make_problem(value.position, above, problem, hint))
    name = path[0]
    old = next((entry for entry in node.entries if entry.key.text == name), None)
    new = _put(None if old is None else old.value, path[1:], (*above, name), value)
    if old is None:
        return MappingNode(node.position, (*node.entries, MappingEntry(ScalarNode(value.position, name), new)))
    key = old.key if path[1:] else ScalarNode(value.position, name)
    entries = (MappingEntry(key, new) if entry is old else entry for entry in node.entries)
    return MappingNode(node.position, tuple(entries))
