"""The section `roles`: which role decides, what each has from `train`, and in which order they start."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import check_config, load_config
from riseml.spec.config.roles_section import is_role_name
from riseml.spec.config.types import Resources, RoleEnd, RoleSection
from tests.unit.spec.examples import HEAD


def read(text: str) -> tuple[RoleSection, ...]:
    """Return the roles of a section, from its value as text."""
    keys = "  run: t\n  install: pip install b\n  resources: {gpus: 1}\n"
    return load_config(f"{HEAD}{keys}  roles: {text}\n").train.roles


@pytest.mark.parametrize(
    ("text", "deciding"),
    [
        ("{learner: {}, actor: {}}", ["learner"]),
        ("{learner: {ends: helps}, actor: {}}", ["actor"]),
        ("{learner: {}, actor: {ends: decides}}", ["actor"]),
        ("{learner: {ends: decides}, actor: {ends: decides}}", ["learner", "actor"]),
    ],
)
def test_the_first_role_that_says_nothing_decides_unless_another_does(text: str, deciding: list[str]) -> None:
    assert [role.name for role in read(text) if role.ends is RoleEnd.DECIDES] == deciding


def test_a_role_has_from_train_what_it_leaves_out() -> None:
    plain, own = read("{learner: {}, actor: {run: c, count: 4, image: d, resources: {cpus: 2}}}")
    assert (plain.run, plain.image, plain.install, plain.count) == (("t",), None, ("pip install b",), None)
    assert (own.run, own.image, own.install, own.count) == (("c",), "d", (), 4)
    assert (plain.resources, own.resources) == (Resources(gpus=1), Resources(cpus=2.0, gpus=1))


@pytest.mark.parametrize(
    ("text", "after"),
    [("[store]", (("store", None),)), ("{store: 6379}", (("store", 6379),))],
)
def test_a_role_waits_for_others_at_a_port(text: str, after: tuple[tuple[str, int | None], ...]) -> None:
    assert read(f"{{learner: {{after: {text}}}, store: {{}}}}")[0].after == after


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{learner: {after: [learner]}}", "a role cannot wait for itself"),
        ("{learner: {after: [stor]}, store: {}}", 'there is no role "stor"'),
        ("{a: {after: [b]}, b: {after: [a]}}", "the roles would wait for each other forever: a after b after a"),
        ("{learner: {ends: helps}}", "no role decides how the experiment ends"),
        ("{learner: {count: 1000}, actor: {}}", "the roles are 1,001 jobs; at most 1,000 are allowed"),
        ("{notebook: {}}", "riseml itself has a job named notebook"),
        ("{docker: {}}", "the role would set DOCKER_HOST, which has another meaning"),
        ("{localhost: {}}", "in every job this name leads to the job itself"),
    ],
)
def test_roles_that_cannot_be_are_refused(text: str, problem: str) -> None:
    problems = check_config(f"{HEAD}  run: t\n  roles: {text}\n").problems
    assert [told.problem for told in problems] == [problem]


@pytest.mark.parametrize(
    ("text", "fits"),
    [("replay-buffer", True), ("a", True), ("Actor", False), ("actor-", False), ("build", False), ("ray", False)],
)
def test_the_names_that_a_role_may_have(text: str, *, fits: bool) -> None:
    assert is_role_name(text) is fits
