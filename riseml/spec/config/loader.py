"""Load a riseml.yml, also one of an earlier generation: its text to a `Spec`, or to all its problems at once."""

from __future__ import annotations

from riseml.base.records import dataclass
from riseml.spec.config.overrides import Overrides, apply_overrides
from riseml.spec.config.topology import check_topologies
from riseml.spec.config.types import Spec
from riseml.spec.yaml.document import MappingNode, Node, ScalarNode, SequenceNode, parse_document
from riseml.spec.yaml.problems import Problem, Severity, SpecError, make_problem, sort_problems

__all__ = ["CheckedSpec", "Overrides", "check_config", "load_config"]

CONFIG_NAME = "riseml.yml"

_EARLIER_GENERATIONS = (
    (("service", "commands"), "a file of the first RiseML generation"),
    (("deploy", "input", "output", "demo"), "a file of RiseML before 0.8"),
)


@dataclass(frozen=True, slots=True)
class CheckedSpec:
    """The result of checking a riseml.yml."""

    spec: Spec | None  # None: one of the problems is an error
    problems: tuple[Problem, ...]  # by position


def check_config(content: str | bytes, name: str = CONFIG_NAME, overrides: Overrides = Overrides()) -> CheckedSpec:
    """Check a riseml.yml. Content never makes it raise; problems are in the result.

    Example: `check_config("project: x\\ntrain: {image: a, run: b}\\n").spec`.

    Args:
        content: the text; bytes must be UTF-8.
        name: the file's name in messages.
        overrides: values of the command line, which replace those of the file.
    """
    document = parse_document(content, name)
    all_problems = list(document.problems)
    if document.root is None:
        return CheckedSpec(None, sort_problems(all_problems, name))
    root, refused = apply_overrides(document.root, overrides)
    all_problems += refused
    legacy = find_legacy_problem(root) if isinstance(root, MappingNode) else None
    if legacy is not None:
        return CheckedSpec(None, sort_problems([*all_problems, legacy], name))
    spec, problems = check_topologies(root)
    all_problems += problems
    usable = all(problem.severity is not Severity.ERROR for problem in all_problems)
    return CheckedSpec(spec if usable else None, sort_problems(all_problems, name))


def load_config(content: str | bytes, name: str = CONFIG_NAME, overrides: Overrides = Overrides()) -> Spec:
    """Return the spec of a riseml.yml; the arguments are those of `check_config`.

    Raises:
        SpecError: the file has errors; all its problems are listed.
    """
    checked = check_config(content, name, overrides)
    if checked.spec is None:
        raise SpecError(checked.problems)
    return checked.spec


def find_legacy_problem(root: MappingNode) -> Problem | None:
    """Return the one problem of a file for an earlier RiseML; None for any other file."""
    for keys, generation in _EARLIER_GENERATIONS:
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
