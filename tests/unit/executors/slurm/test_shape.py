"""The shape in which a gang asks for its nodes."""

from __future__ import annotations

import pytest

from riseml.base.names import JobName
from riseml.executors.slurm.shape import ShapeKind, choose_shape, make_need
from riseml.model import NodeKind
from riseml.spec.config.types import Resources

NODES = (NodeKind(2, 4, 4000, 2), NodeKind(1, 4, 4000, 0))


@pytest.mark.parametrize(
    ("needs", "kind"),
    [
        ([(1, 100, 0)] * 3, ShapeKind.ONE_NODE),
        ([(0.1, 64, 0)] * 4, ShapeKind.ONE_NODE),
        ([(8, 100, 0)], ShapeKind.ONE_NODE),
        ([(3, 100, 0)] * 3, ShapeKind.EQUAL),
        ([(1, 100, 1)] * 4, ShapeKind.EQUAL),
        ([(3, 100, 0), (3, 100, 0), (1, 100, 0)], ShapeKind.COMPONENTS),
        ([(4, 100, 0), (3, 100, 0), (2, 100, 0), (1, 100, 0)], ShapeKind.EQUAL),
    ],
)
def test_a_gang_has_the_shape_that_its_roles_and_the_nodes_allow(
    needs: list[tuple[float, int, int]], kind: ShapeKind
) -> None:
    roles = [make_need(JobName(f"worker.{at}"), Resources(*need)) for at, need in enumerate(needs)]
    shape = choose_shape(roles, NODES)
    assert shape.kind is kind
    assert sorted(role.name for component in shape.components for role in component) == sorted(r.name for r in roles)


def test_the_roles_of_one_size_are_one_component() -> None:
    big, small = Resources(3, 100, 0), Resources(1, 100, 0)
    roles = [make_need(JobName(name), need) for name, need in (("master", big), ("ps.1", small), ("worker.1", big))]
    shape = choose_shape(roles, NODES)
    assert [[role.name for role in component] for component in shape.components] == [["master", "worker.1"], ["ps.1"]]
    assert shape.describe() == "a heterogeneous job of 2 components"


def test_a_part_of_a_core_is_a_whole_one() -> None:
    assert make_need(JobName("train"), Resources(0.1, 64, 0)).cpus == 1
    assert make_need(JobName("train"), Resources(2.5, 64, 0)).cpus == 3
