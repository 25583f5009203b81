"""The plan of a trial, whose point is chosen long after its set was submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from riseml.model import Lineage, Plan, Point
from riseml.planning.image import Manifest
from riseml.planning.plan import plan_topologies, put_point
from riseml.spec.config.types import Parameter, Spec

Template = tuple[Point, Plan]
"""What runs for the values of some parameters; where no parameter changes the jobs, the values are empty."""


def make_templates(spec: Spec, manifest: Manifest) -> tuple[Template, ...]:
    """Return what the trials of a search run: a plan for each topology.

    Raises:
        UsageError: as `make_plan`.
    """
    values = [topology.values for topology in spec.topologies] or [()]
    return tuple(zip(values, plan_topologies(spec, values, manifest), strict=True))


def plan_trial(
    templates: Sequence[Template],
    point: Point,
    parameters: Sequence[Parameter] = (),
    lineage: Lineage | None = None,
) -> Plan:
    """Return what runs for a point.

    Args:
        templates: of the search.
        point: the values of the parameters that are there.
        parameters: all of the search; where one is not there, its placeholders become its default.
        lineage: its place in a search with a population.

    Raises:
        LookupError: no template has its values.
    """
    pairs = set(point)
    for values, plan in templates:
        if pairs.issuperset(values):
            return replace(put_point(plan, parameters, point), lineage=lineage)
    raise LookupError(f"no plan has the values of {point}")
