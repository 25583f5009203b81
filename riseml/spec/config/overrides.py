"""Values of the command line that replace those of the file: `-p lr=0.1`, `-p 'lr=[0.1, 0.01]'` and
`--set train.resources.gpus=2`.
"""

from __future__ import annotations

from collections.abc import Container

from riseml.base.records import dataclass
from riseml.spec.scalars.quantities import parse_number
from riseml.spec.scalars.texts import BadText, quote_text
from riseml.spec.yaml.document import MappingEntry, MappingNode, Node, ScalarNode, SequenceNode, parse_document
from riseml.spec.yaml.problems import FilePosition, KeyPath, Problem, make_problem


@dataclass(frozen=True, slots=True)
class Overrides:
    """Names and texts in the order of the command line; the last one of a name counts."""

    parameters: tuple[tuple[str, str], ...] = ()  # (name, value); `[1, 2]` is a list, another value stays as written
    settings: tuple[tuple[str, str], ...] = ()  # (`train.resources.gpus`, text); the text is parsed as YAML


_PARAMETERS = ("train", "parameters")
_PARAMETER_KEYS = frozenset({"values", "range", "uniform", "log", "int", "normal", "when", "default"})
"""The keys below the name of a parameter."""

_DEEPEST = 20  # keys of a path; a file may be as deep (document.MAX_DEPTH)
_LONGEST_LABEL = 100  # characters


class _BadOverride(Exception):
    """An option that cannot be applied; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def apply_overrides(root: Node, overrides: Overrides) -> tuple[Node, tuple[Problem, ...]]:
    """Return the tree with every setting and parameter applied; problems have the option as their file."""
    problems: list[Problem] = []
    for name, text in overrides.settings:
        try:
            root = _put_value(root, _join_parameter(_setting_path(name, text)), (), _parse_setting(name, text))
        except _BadOverride as refused:
            problems.append(refused.problem)
    for name, text in overrides.parameters:
        try:
            value = _read_parameter(name, text, _list_file_values(root, name))
            root = _put_value(root, (*_PARAMETERS, name), (), value)
        except _BadOverride as refused:
            problems.append(refused.problem)
    return root, tuple(problems)


def _format_option(option: str, name: str, text: str) -> str:
    """Return the option as it was written, as one short printable line for messages."""
    written = f"{option} {name}={text}"
    short = written if len(written) <= _LONGEST_LABEL else f"{written[:_LONGEST_LABEL]}..."
    return "".join(char if char.isprintable() else "?" for char in short)


def _list_file_values(root: Node, name: str) -> tuple[str, ...]:
    """Return the values that a parameter has in the file, as written; empty without a value or a list of them."""
    node: Node | None = root
    for key in (*_PARAMETERS, name):
        node = node.get(key) if isinstance(node, MappingNode) else None
    if isinstance(node, MappingNode):
        node = node.get("values")
    items = node.items if isinstance(node, SequenceNode) else () if node is None else (node,)
    return tuple(item.text for item in items if isinstance(item, ScalarNode))


def _read_parameter(name: str, text: str, written: Container[str]) -> Node:
    """Return the value of `-p`: a list for `[0.1, 0.01]`, else one text. A text that the file has is that one: a set
    repeats its own values in this form.
    """
    position = FilePosition(_format_option("-p", name, text))
    if text in written:
        return ScalarNode(position, text, style='"')
    if text.startswith("[") and text.endswith("]"):
        values = parse_document(text, position.file).root
        if isinstance(values, SequenceNode) and values.items and all(isinstance(it, ScalarNode) for it in values.items):
            return _place_at(values, position)
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 1 and all(part in written or _is_number(part) for part in parts):
        listed = ", ".join(parts)
        problem = f"{quote_text(text)} may be {len(parts)} values, or one text"
        hint = f"""write -p '{name}=[{listed}]' for the values, -p '{name}=["{text}"]' for the text"""
        raise _BadOverride(make_problem(position, (*_PARAMETERS, name), problem, hint))
    return ScalarNode(position, text, style='"')


def _is_number(text: str) -> bool:
    try:
        return parse_number(text) is not None
    except BadText:
        return False


def _setting_path(name: str, text: str) -> tuple[str, ...]:
    parts = tuple(name.split("."))
    if all(parts) and len(parts) <= _DEEPEST:
        return parts
    position = FilePosition(_format_option("--set", name, text))
    raise _BadOverride(
        make_problem(position, (), f"{quote_text(name)} is not a path of keys", "write it like train.resources.gpus=2")
    )


def _join_parameter(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path whose part `optimizer.lr` is one name: in `parameters`, a name ends at the key of its values."""
    if path[:2] != _PARAMETERS or len(path) < 4:
        return path
    end = next((index for index in range(3, len(path)) if path[index] in _PARAMETER_KEYS), len(path))
    return (*_PARAMETERS, ".".join(path[2:end]), *path[end:])


def _parse_setting(name: str, text: str) -> Node:
    position = FilePosition(_format_option("--set", name, text))
    if not text.strip():
        return ScalarNode(position, "")
    document = parse_document(text, position.file)
    if document.root is None or document.problems:
        first = document.problems[0]
        raise _BadOverride(make_problem(position, tuple(name.split(".")), first.problem, first.hint))
    return _place_at(document.root, position)


def _place_at(node: Node, position: FilePosition) -> Node:
    """Return the node with one position for all of it: columns within an option help no reader."""
    if isinstance(node, ScalarNode):
        return ScalarNode(position, node.text, node.style)
    if isinstance(node, MappingNode):
        entries = (
            MappingEntry(ScalarNode(position, entry.key.text), _place_at(entry.value, position))
            for entry in node.entries
        )
        return MappingNode(position, tuple(entries))
    return type(node)(position, tuple(_place_at(item, position) for item in node.items))


def _put_value(node: Node | None, path: tuple[str, ...], above: KeyPath, value: Node) -> Node:
    """Return the node with `value` at `path`; missing sections are created."""
    if not path:
        return value
    if node is None or (isinstance(node, ScalarNode) and (node.empty or node.text == "false")):
        node = MappingNode(value.position, ())
    if not isinstance(node, MappingNode):
        form = "a single value" if isinstance(node, ScalarNode) else "a list"
        hint = "set the whole value" if above else ""
        problem = f"has no keys in {node.position.file}: it is {form}"
        raise _BadOverride(make_problem(value.position, above, problem, hint))
    name = path[0]
    old = next((entry for entry in node.entries if entry.key.text == name), None)
    new = _put_value(None if old is None else old.value, path[1:], (*above, name), value)
    if old is None:
        return MappingNode(node.position, (*node.entries, MappingEntry(ScalarNode(value.position, name), new)))
    # keep the position that the file gives to the key: `-p` may set it, and `_refuse_unknown` finds names without one
    key = old.key if path[1:] or above == _PARAMETERS else ScalarNode(value.position, name)
    entries = (MappingEntry(key, new) if entry is old else entry for entry in node.entries)
    return MappingNode(node.position, tuple(entries))
