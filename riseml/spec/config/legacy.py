"""Files of RiseML's earlier generations: recognised, and shown in the form of today."""

from __future__ import annotations

from riseml.spec.yaml.document import MappingNode, Node, ScalarNode, SequenceNode
from riseml.spec.yaml.problems import Problem, make_problem

_GENERATIONS = (
    (("service", "commands"), "a file of the first RiseML generation"),
    (("deploy", "input", "output", "demo"), "a file of RiseML before 0.8"),
)


def find_legacy_problem(root: MappingNode) -> Problem | None:
    """The one problem of a file that was written for an earlier RiseML; None for any other file."""
    for keys, generation in _GENERATIONS:
        for entry in root.entries:
            name = entry.key.text
            if name not in keys:
                continue
            if root.get("train") is not None:
                return make_problem(entry.key.position, (name,), f"`{name}` is a part of {generation}", "leave it out")
            problem = f"`{name}` makes this {generation}, which is not read any more"
            return make_problem(entry.key.position, (name,), problem, f"today it is written so:\n{_modern(root)}")
    return None


def _modern(root: MappingNode) -> str:
    """The `train:` form, with what can be taken over."""
    image = _find(root, ("image", "framework"))
    run = _find(root, ("run", "commands", "command"))
    lines = [f"project: {(_find(root, ('project', 'name')) or ['my-project'])[0]}", "train:"]
    lines.append(f"  image: {(image or ['python:3.11'])[0]}")
    lines.append("  run:")
    lines += [f"  - {line}" for line in run or ["python train.py"]]
    return "\n".join(lines)


def _find(node: Node | None, names: tuple[str, ...]) -> list[str]:
    """The texts of the first key with one of these names, at the top or in a section below it."""
    if not isinstance(node, MappingNode):
        return []
    for name in names:
        value = node.get(name)
        if isinstance(value, ScalarNode) and not value.empty:
            return [value.text]
        if isinstance(value, SequenceNode):
            return [item.text for item in value.items if isinstance(item, ScalarNode)]
    for entry in node.entries:
        found = _find(entry.value, names)
        if found:
            return found
    return []
