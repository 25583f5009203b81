"""Load a riseml.yml, also one of an earlier generation: its text to a `Spec`, or to all its problems at once."""

from __future__ import annotations

from riseml.base.records import dataclass
from riseml.spec.config.overrides import Overrides, apply_overrides
from riseml.spec.config.topology import check_topologies
from riseml.spec.config.types import Spec
from riseml.spec.yaml.document import MappingNode, parse_document
from riseml.spec.yaml.problems import Problem, Severity, SpecError, make_problem, sort_problems

__all__ = ["CheckedSpec", "Overrides", "check_config", "load_config"]

CONFIG_NAME = "riseml.yml"

CONVERT_HINT = "`riseml init --convert` rewrites the file for this version"
"""The hint for a file of an earlier RiseML."""

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
                return make_problem(
                    entry.key.position, (name,), f"`{name}` belongs to {generation}", f"remove it, or {CONVERT_HINT}"
                )
            problem = f"`{name}` marks {generation}, which is no longer supported"
            return make_problem(entry.key.position, (name,), problem, CONVERT_HINT)
    return None
