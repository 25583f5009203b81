"""Counts and resources that are parameters: `worker: "{{workers}}"`, `mem: "{{mem}}GiB"`.

Each combination of their values gives a file of its own, with numbers where the placeholders are. Schema and builder
check every one of these files, so that a value which makes no sense is refused before anything starts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from riseml.spec.config.builder import build_spec
from riseml.spec.config.parameters import MOST_EXPERIMENTS, read_parameters
from riseml.spec.config.repeat import add_seeds
from riseml.spec.config.types import Spec, Topology
from riseml.spec.scalars.placeholders import find_placeholders
from riseml.spec.schema.contract import CONFIG_CONTRACT, PARAMETER_MARK
from riseml.spec.yaml.document import MappingEntry, MappingNode, Node, ScalarNode, SequenceNode
from riseml.spec.yaml.problems import KeyPath, Problem, format_key_path

Values = tuple[tuple[str, str], ...]
"""Names of parameters and one value of each."""

_STAND_IN = "1"  # for a parameter that does not exist; in front of a unit it is an amount of memory
_STAND_IN_MEMORY = "1GiB"


def check_topologies(root: Node) -> tuple[Spec, list[Problem]]:
    """Return the spec of a file, with one topology for each combination of the parameters that counts and resources
    use; and all problems. With an error among them the spec is unusable.
    """
    root = add_seeds(root)
    places = dict(_find_places(root, ()))
    if not places:
        return _check_file(root, {})
    names = {path: _list_names(node.text) for path, node in places.items()}
    points, count = _list_points(root, {name for names_there in names.values() for name in names_there})
    checked = [_check_file(_fill_node(root, (), places, dict(point)), places, count) for point in points]
    problems = _merge_problems(list(zip(points, (problems_there for _, problems_there in checked), strict=True)), names)
    topologies = tuple(Topology(point, spec.train) for point, (spec, _) in zip(points, checked, strict=True))
    return replace(checked[0][0], topologies=topologies), problems


def _check_file(root: Node, places: Mapping[KeyPath, ScalarNode], count: int = 1) -> tuple[Spec, list[Problem]]:
    """Return the spec of a file, which is one of `count`, and its problems."""
    file = CONFIG_CONTRACT.check_values(root)
    file.filled.update({path: node.text for path, node in places.items()})
    spec = build_spec(file)
    if count > MOST_EXPERIMENTS:
        problem = f"counts and resources have {count:,} combinations; at most {MOST_EXPERIMENTS:,} are allowed"
        file.refuse_key(("train", "parameters"), problem, "use fewer values of the parameters in them")
    return spec, file.problems


def _find_places(node: Node, path: KeyPath) -> Iterator[tuple[KeyPath, ScalarNode]]:
    """Yield every value with a placeholder whose key takes a parameter."""
    if isinstance(node, MappingNode):
        for entry in node.entries:
            yield from _find_places(entry.value, (*path, entry.key.text))
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            yield from _find_places(item, (*path, index))
    elif "{{" in node.text and CONFIG_CONTRACT.at(path).get(PARAMETER_MARK) and find_placeholders(node.text):
        yield path, node


def _list_names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name, _, _ in find_placeholders(text)))


def _list_points(root: Node, names: set[str]) -> tuple[list[Values], int]:
    """Return every combination of the values of these parameters, and how many there are. Return only the first one
    when there are too many: `_check_file` or `read_parameters` reports that.
    """
    train = root.get("train") if isinstance(root, MappingNode) else None
    section = train.get("parameters") if isinstance(train, MappingNode) else None
    if section is None or not isinstance(train, MappingNode):
        return [()], 1
    alone = MappingNode(train.position, tuple(entry for entry in train.entries if entry.key.text == "parameters"))
    key = ScalarNode(train.position, "train")
    file = CONFIG_CONTRACT.check_values(MappingNode(root.position, (MappingEntry(key, alone),)))
    used = [parameter for parameter in read_parameters(file) if parameter.name in names]
    values = [tuple(dict.fromkeys(parameter.values)) for parameter in used]
    count = math.prod(map(len, values))
    rows = itertools.islice(itertools.product(*values), 1 if count > MOST_EXPERIMENTS else None)
    return [tuple(zip([parameter.name for parameter in used], row, strict=True)) for row in rows], count


def _fill_node(node: Node, path: KeyPath, places: Mapping[KeyPath, ScalarNode], values: Mapping[str, str]) -> Node:
    """Return the node with a plain number at every place; what has no place below it stays as it is."""
    if not any(place[: len(path)] == path for place in places):
        return node
    if isinstance(node, MappingNode):
        entries = (
            replace(entry, value=_fill_node(entry.value, (*path, entry.key.text), places, values))
            for entry in node.entries
        )
        return replace(node, entries=tuple(entries))
    if isinstance(node, SequenceNode):
        items = (_fill_node(item, (*path, index), places, values) for index, item in enumerate(node.items))
        return replace(node, items=tuple(items))
    return replace(node, text=_fill_text(node.text, path, values), style="")


def _fill_text(text: str, path: KeyPath, values: Mapping[str, str]) -> str:
    pieces: list[str] = []
    last = 0
    for name, start, end in find_placeholders(text):
        pieces += [text[last:start], values.get(name, _STAND_IN)]
        last = end
    filled = "".join([*pieces, text[last:]])
    is_memory = CONFIG_CONTRACT.at(path).get("format") == "memory"
    return (
        _STAND_IN_MEMORY if filled == _STAND_IN and is_memory and not values.keys() & {*_list_names(text)} else filled
    )


def _merge_problems(
    checked: Sequence[tuple[Values, list[Problem]]], names: Mapping[KeyPath, tuple[str, ...]]
) -> list[Problem]:
    """Return each problem once; a problem that only some values cause names those values."""
    written = {format_key_path(path): set(used) for path, used in names.items()}
    points = [point for point, _ in checked]
    merged: dict[Problem, None] = {}
    for problem in dict.fromkeys(problem for _, problems in checked for problem in problems):
        bad = [point for point, problems in checked if problem in problems]
        guilty = _find_guilty(bad, points) | written.get(problem.path, set())
        for point in bad:
            cause = ", ".join(f"{name}={value}" for name, value in point if name in guilty)
            merged.setdefault(replace(problem, problem=f"{problem.problem} (with {cause})") if cause else problem)
    return list(merged)


def _find_guilty(bad: Sequence[Values], points: Sequence[Values]) -> set[str]:
    """Return the parameters whose other values may avoid a problem that the bad points have."""
    names = [name for name, _ in points[0]]
    values = {name: {dict(point)[name] for point in points} for name in names}
    without = {name: {tuple(pair for pair in point if pair[0] != name) for point in bad} for name in names}
    return {name for name in names if len(bad) != len(without[name]) * len(values[name])}
