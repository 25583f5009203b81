"""The key `outputs`: which patterns are read, and which could mean too much."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import check_config, load_config
from tests.unit.spec.examples import HEAD


def test_each_pattern_is_read_once() -> None:
    train = load_config(f'{HEAD}  run: b\n  outputs: [runs, "*.pt", runs]\n').train
    assert train.policy.outputs == ("runs", "*.pt")


@pytest.mark.parametrize("pattern", ["/", "~/*.pt", "/etc/passwd", "'{{lr}}'", "$HOME/x", "'*.{a,b}'"])
def test_a_pattern_that_could_mean_too_much_is_refused(pattern: str) -> None:
    checked = check_config(f"{HEAD}  run: b\n  outputs: [runs, {pattern}]\n")
    assert checked.spec is None
    assert [problem.path for problem in checked.problems] == ["train.outputs[1]"]


def test_a_role_has_outputs_of_its_own() -> None:
    roles = load_config(f"{HEAD}  run: b\n  roles: {{learner: {{outputs: runs}}, actor: {{}}}}\n").train.roles
    assert [role.outputs for role in roles] == [("runs",), ()]
