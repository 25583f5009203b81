"""What the command line says instead of the file: `-p lr=0.1` and `--set train.resources.gpus=2`."""

from __future__ import annotations

from dataclasses import dataclass

from riseml.spec.yaml.document import Entry, Mapping, Node, Scalar, parse
from riseml.spec.yaml.problems import Path, Place, Problem, make_problem, quoted


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


def override(root: Node, overrides: Overrides) -> tuple[Node, tuple[Problem, ...]]:
    """The tree with every setting and parameter put in; problems name the option as their file."""
    problems: list[Problem] = []
    for name, text in overrides.settings:
        try:
            root = _put(root, _setting_path(name, text), (), _value(name, text))
        except _Refused as refused:
            problems.append(refused.problem)
    for name, text in overrides.parameters:
        place = Place(_label("-p", name, text))
        try:
            root = _put(root, ("train", "parameters", name), (), Scalar(place, text, style='"'))
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
    place = Place(_label("--set", name, text))
    raise _Refused(make_problem(place, (), f"{quoted(name)} is no path", "write it like train.resources.gpus=2"))


def _value(name: str, text: str) -> Node:
    place = Place(_label("--set", name, text))
    if not text.strip():
        return Scalar(place, "")
    document = parse(text, place.file)
    if document.root is None or document.problems:
        first = document.problems[0]
        raise _Refused(make_problem(place, tuple(name.split(".")), first.problem, first.hint))
    return _placed(document.root, place)


def _placed(node: Node, place: Place) -> Node:
    """The same node with all of it at one place: columns of an option tell nothing."""
    if isinstance(node, Scalar):
        return Scalar(place, node.text, node.style)
    if isinstance(node, Mapping):
        entries = (Entry(Scalar(place, entry.key.text), _placed(entry.value, place)) for entry in node.entries)
        return Mapping(place, tuple(entries))
    return type(node)(place, tuple(_placed(item, place) for item in node.items))


def _put(node: Node | None, path: tuple[str, ...], above: Path, value: Node) -> Node:
    """The node with `value` at `path`; sections that are missing on the way are made."""
    if not path:
        return value
    if node is None or (isinstance(node, Scalar) and (node.empty or node.text == "false")):
        node = Mapping(value.place, ())
    if not isinstance(node, Mapping):
        what = "a text" if isinstance(node, Scalar) else "a list"
        hint = "give the whole value" if above else ""
        problem = f"has nothing below it in {node.place.file}: it is {what}"
        raise _Refused(make_problem(value.place, above, problem, hint))
    name = path[0]
    old = next((entry for entry in node.entries if entry.key.text == name), None)
    new = _put(None if old is None else old.value, path[1:], (*above, name), value)
    if old is None:
        return Mapping(node.place, (*node.entries, Entry(Scalar(value.place, name), new)))
    key = old.key if path[1:] else Scalar(value.place, name)
    entries = (Entry(key, new) if entry is old else entry for entry in node.entries)
    return Mapping(node.place, tuple(entries))
