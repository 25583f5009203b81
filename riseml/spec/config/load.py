"""The way in: the text of a riseml.yml to a `Spec`, or to all its problems at once."""

from __future__ import annotations

from dataclasses import dataclass

from riseml.spec.config.build import build
from riseml.spec.config.legacy import find_legacy
from riseml.spec.config.overrides import Overrides, override
from riseml.spec.config.types import Spec
from riseml.spec.schema.contract import CONFIG as CONTRACT
from riseml.spec.yaml.document import Mapping, parse
from riseml.spec.yaml.problems import Problem, Severity, SpecError, in_order

__all__ = ["Checked", "Overrides", "check", "load"]

CONFIG = "riseml.yml"


@dataclass(frozen=True, slots=True)
class Checked:
    """A file that was read. `spec` is None when one of the problems is an error; problems are in the file's order."""

    spec: Spec | None
    problems: tuple[Problem, ...]


def check(content: str | bytes, name: str = CONFIG, overrides: Overrides = Overrides()) -> Checked:
    """Read a riseml.yml. Never raises, whatever the content is.

    Args:
        content: the text; bytes must be UTF-8.
        name: how problems call the file.
        overrides: what the command line says instead.
    """
    document = parse(content, name)
    found = list(document.problems)
    if document.root is None:
        return Checked(None, in_order(found, name))
    root, refused = override(document.root, overrides)
    found += refused
    legacy = find_legacy(root) if isinstance(root, Mapping) else None
    if legacy is not None:
        return Checked(None, in_order([*found, legacy], name))
    settled = CONTRACT.apply(root)
    spec = build(settled)
    found += settled.problems
    usable = all(problem.severity is not Severity.ERROR for problem in found)
    return Checked(spec if usable else None, in_order(found, name))


def load(content: str | bytes, name: str = CONFIG, overrides: Overrides = Overrides()) -> Spec:
    """Read a riseml.yml that has to be right.

    Raises:
        SpecError: it has problems; all of them are listed.
    """
    checked = check(content, name, overrides)
    if checked.spec is None:
        raise SpecError(checked.problems)
    return checked.spec
