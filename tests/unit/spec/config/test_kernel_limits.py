"""What Linux takes as one variable or one argument is known before a job starts."""

from __future__ import annotations

import errno
import json
import subprocess

import pytest

from riseml.base.errors import UsageError
from riseml.planning.launch import LaunchTarget, StorageRoots, make_launch
from riseml.spec.config.loader import check_config, load_config
from riseml.spec.scalars.text_sizes import LONGEST, measure_variable
from riseml.submission.passed_variables import take_variables
from tests.unit.frameworks.layouts import gang, make_experiment

FILE_HINT = "put the text into a file of the project"


def check(train: dict[str, object]) -> list[str]:
    file = json.dumps({"project": "x", "train": {"image": "a", "run": "true", **train}})
    return [str(problem) for problem in check_config(file).problems]


def test_the_limit_is_that_of_the_kernel() -> None:
    value = "x" * (LONGEST - 2)
    subprocess.run(["/bin/true"], env={"A": value}, check=True)
    assert check({"env": {"A": value}}) == []
    with pytest.raises(OSError, match="rgument list too long") as raised:
        subprocess.run(["/bin/true"], env={"A": value + "x"}, check=True)
    assert raised.value.errno == errno.E2BIG
    (problem,) = check({"env": {"A": value + "x"}})
    assert "train.env.A: the variable A has 131,072 bytes, and Linux takes 131,071 in one variable" in problem
    assert FILE_HINT in problem


@pytest.mark.parametrize(
    ("train", "told"),
    [
        ({"env": [f"BIG={'é' * 70_000}"]}, "train.env[0]: the variable BIG has 140,004 bytes"),
        ({"parameters": {"a-b": ["x", "y" * 131_070]}}, "train.parameters.a-b: the variable A_B has 131,074 bytes"),
        ({"run": ["echo " + "y" * 515] * 300}, "train.run: the script has "),
        ({"run": "echo " + "{{a}} " * 40, "parameters": {"a": ["'" * 1000]}}, "train.run: the script has "),
        ({"install": ["true", "echo " + "y" * 131_000]}, "train.install[1]: the step has "),
    ],
)
def test_what_no_process_can_have_is_refused_with_its_name_and_size(train: dict[str, object], told: str) -> None:
    assert [told in problem for problem in check(train) if "warning" not in problem] == [True]


def test_a_script_of_a_role_is_refused_there() -> None:
    roles = {"learner": {"run": ["echo " + "y" * 515] * 300}, "actor": {"run": "true"}}
    file = json.dumps({"project": "x", "train": {"image": "a", "roles": roles}})
    (problem,) = [one for one in map(str, check_config(file).problems) if "warning" not in one]
    assert "train.roles.learner.run: the script has 187," in problem


@pytest.mark.parametrize(
    "train",
    [
        {"image": "a"},
        {"framework": "jax", "jax": {"distributed": {"worker": 2, "processes": 2}}},
        {"framework": "tensorflow", "tensorflow": {"horovod": {"workers": 2}}},
    ],
)
def test_a_file_that_is_valid_has_no_argument_above_the_limit(train: dict[str, object]) -> None:
    """The size that is checked counts all that riseml adds, and not much more."""
    low, high, text = 1000, 140_000, "é'x\\\"-"
    while high - low > 1000:
        size = (low + high) // 2
        file = json.dumps({"project": "x", "train": {**train, "run": [": " + text * (size // 140)] * 20}})
        if any("the script has" in str(one) for one in check_config(file).problems):
            high = size
        else:
            low = size
            experiment = make_experiment(load_config(file))
            launch = make_launch(experiment, gang(experiment)[0], LaunchTarget("s", StorageRoots("/o", "/d")))
            longest = max(len(word.encode()) for word in launch.command)
    assert LONGEST - 6000 < longest <= LONGEST


def test_variables_of_the_user_are_measured_before_they_are_sent() -> None:
    assert measure_variable("A", "é") == 4
    assert take_variables(["A"], {"A": "x" * (LONGEST - 2)}) == {"A": "x" * (LONGEST - 2)}
    with pytest.raises(UsageError, match=r"the variable TOKEN has 131,078 bytes") as raised:
        take_variables(["TOKEN"], {"TOKEN": "s" * (LONGEST + 1)})
    assert "sss" not in raised.value.message
    many = {f"V{at}": "x" * 130_000 for at in range(16)}
    with pytest.raises(UsageError, match="V14, V15 have 2,080,"):
        take_variables(list(many), many)
