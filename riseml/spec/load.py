"""The way in: the text of a riseml.yml to a `Spec`, or to all its problems at once."""

from __future__ import annotations

from dataclasses import dataclass

from riseml.spec.build import build
from riseml.spec.document import Mapping, parse
from riseml.spec.legacy import find_legacy
from riseml.spec.overrides import Overrides, override
from riseml.spec.problems import Place, Problem, Severity, SpecError, make_problem
from riseml.spec.schema import apply_schema
from riseml.spec.types import Spec

__all__ = ["Checked", "Overrides", "check", "load"]

CONFIG = "riseml.yml"
_MOST_PROBLEMS = 200


@dataclass(frozen=True, slots=True)
class Checked:
    """A file that was read. `spec` is None when one of the problems is an error; problems are in the file's order."""

    spec: Spec | None
    problems: tuple[Problem, ...]


def check(content: str | bytes, name: str = CONFIG, overrides: Overrides = Overrides()) -> Checked:  # noqa: B008
    """Read a riseml.yml. Never raises, whatever the content is.

    Args:
        content: the text; bytes must be UTF-8.
        name: how problems call the file.
        overrides: what the command line says instead.
    """
    document = parse(content, name)
    found = list(document.problems)
    if document.root is None:
        return Checked(None, _sorted(found, name))
    root, refused = override(document.root, overrides)
    found += refused
    legacy = find_legacy(root) if isinstance(root, Mapping) else None
    if legacy is not None:
        return Checked(None, _sorted([*found, legacy], name))
    settled = apply_schema(root)
    spec = build(settled)
    found += settled.problems
    usable = all(problem.severity is not Severity.ERROR for problem in found)
    return Checked(spec if usable else None, _sorted(found, name))


def load(content: str | bytes, name: str = CONFIG, overrides: Overrides = Overrides()) -> Spec:  # noqa: B008
    """Read a riseml.yml that has to be right.

    Raises:
        SpecError: it has problems; all of them are listed.
    """
    checked = check(content, name, overrides)
    if checked.spec is None:
        raise SpecError(checked.problems)
    return checked.spec


def _sorted(problems: list[Problem], name: str) -> tuple[Problem, ...]:
    """The file's problems by position, then those of the command line; errors survive when there are too many."""
    kept = sorted(problems, key=lambda one: one.severity is Severity.WARNING)[:_MOST_PROBLEMS]
    kept.sort(key=lambda one: (one.file != name, one.file, one.line, one.column, one.path))
    if len(kept) < len(problems):
        last = Place(kept[-1].file, kept[-1].line, kept[-1].column)
        kept.append(make_problem(last, (), f"{len(problems) - len(kept):,} more problems are not listed"))
    return tuple(kept)
