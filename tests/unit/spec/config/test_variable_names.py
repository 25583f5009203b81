"""The section `variables`: which variables of the environment parameters become."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import check_config, load_config
from tests.unit.spec.examples import HEAD

PARAMETERS = f"{HEAD}  run: t {{{{lr}}}} {{{{path}}}}\n  parameters: {{lr: 1, path: a}}\n"


def test_a_parameter_has_the_variable_that_the_section_names_or_none() -> None:
    policy = load_config(f"{PARAMETERS}  variables: {{lr: MY_RATE, path: false}}\n").train.policy
    assert policy.variables == (("lr", "MY_RATE"), ("path", ""))


def test_a_parameter_whose_own_variable_jobs_need_can_have_another_one() -> None:
    assert check_config(PARAMETERS).spec is None
    assert check_config(f"{PARAMETERS}  variables: {{path: MY_PATH}}\n").problems == ()


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("{path: true}", "true is not the name of a variable", "write a name, or false for none"),
        ("{path: A, lrr: B}", 'there is no parameter "lrr"', 'did you mean "lr"?'),
        ("{path: A, zzz: B}", 'there is no parameter "zzz"', "name a parameter of `parameters`"),
        ("{path: A B}", '"A B" is not the name of a variable', "use letters, digits and _; or write false for none"),
    ],
)
def test_other_names_are_refused(text: str, problem: str, hint: str) -> None:
    problems = check_config(f"{PARAMETERS}  variables: {text}\n").problems
    assert (problem, hint) in [(told.problem, told.hint) for told in problems]
