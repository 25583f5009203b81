"""The plan of a trial, whose point is chosen long after its set was submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from riseml.model import Plan, Point
from riseml.planning.image import Manifest
from riseml.planning.plan import make_plans
from riseml.spec.config.types import Spec

Template = tuple[Point, Plan]
"""What runs for the values of some parameters; where no parameter changes the jobs, the values are empty."""


def make_templates(spec: Spec, manifest: Manifest) -> tuple[Template, ...]:
    """Return what the trials of a search run: a plan for each topology.

    Raises:
        UsageError: as `make_plan`.
    """
    values = [topology.values for topology in spec.topologies] or [()]
    return tuple(zip(values, make_plans(spec, values, manifest), strict=True))


def plan_trial(templates: Sequence[Template], point: Point) -> Plan:
    """Return what runs for a point.

    Raises:
        LookupError: no template has its values.
    """
    pairs = set(point)
    for values, plan in templates:
        if pairs.issuperset(values):
            return replace(plan, parameters=point)
    raise LookupError(f"no plan has the values of {point}")
