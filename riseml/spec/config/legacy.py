"""Files of earlier RiseML generations: recognise them, and show their content in the present form."""

from __future__ import annotations

from riseml.spec.yaml.document import MappingNode, Node, ScalarNode, SequenceNode
from riseml.spec.yaml.problems import Problem, make_problem

_GENERATIONS = (
    (("service", "commands"), "a file of the first RiseML generation"),
    (("deploy", "input", "output", "demo"), "a file of RiseML before 0.8"),
)


def find_legacy_problem(root: MappingNode) -> Problem | None:
    """Return the one problem of a file for an earlier RiseML; None for any other file."""
    for keys, generation in _GENERATIONS:
        for entry in root.entries:
            name = entry.key.text
            if name not in keys:
                continue
            if root.get("train") is not None:
                return make_problem(entry.key.position, (name,), f"`{name}` belongs to {generation}", "remove it")
            problem = f"`{name}` marks {generation}, which is no longer supported"
            return make_problem(entry.key.position, (name,), problem, f"write it like this:\n{_convert_to_train(root)}")
    return None


def _convert_to_train(root: MappingNode) -> str:
    """Return the content of the file in the `train:` form, as far as it can be converted."""
    image = _find_texts(root, ("image", "framework"))
    run = _find_texts(root, ("run", "commands", "command"))
    lines = [f"project: {(_find_texts(root, ('project', 'name')) or ['my-project'])[0]}", "train:"]
    lines.append(f"  image: {(image or ['python:3.11'])[0]}")
    lines.append("  run:")
    lines += [f"  - {line}" for line in run or ["python train.py"]]
    return "\n".join(lines)


def _find_texts(node: Node | None, names: tuple[str, ...]) -> list[str]:
    """Return the texts of the first key with one of these names, at the top or in a section below it."""
    if not isinstance(node, MappingNode):
        return []
    for name in names:
        value = node.get(name)
        if isinstance(value, ScalarNode) and not value.empty:
            return [value.text]
        if isinstance(value, SequenceNode):
            return [item.text for item in value.items if isinstance(item, ScalarNode)]
    for entry in node.entries:
        texts = _find_texts(entry.value, names)
        if texts:
            return texts
    return []
