"""Functions that jobs import by their path: which ones, and the line that calls them."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.errors import UsageError
from riseml.python_api.function_calls import FunctionPath, find_function, write_command, write_map_command
from riseml.spec.config.loader import Overrides, check_config
from tests.unit.python_api import functions

HERE = Path(__file__).parents[3]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_function_of_a_module_has_its_path() -> None:
    assert find_function(functions.train, HERE) == FunctionPath(".", "tests.unit.python_api.functions", "train")
    assert find_function(functions.train, HERE.parent).root == HERE.name, "a project may have its modules in a folder"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda: 1, "a lambda has no name"),
        (functions.make_inner(), "make_inner.<locals>.inner is defined inside of another function"),
        (functions.Trainer.train, "Trainer.train is defined inside"),
        (functions.Trainer().train, "is not a function that a module defines"),
        (math.sqrt, "is not a function that a module defines"),
        (functions.decorated, "tests.unit.python_api.functions has no function inner_name of its own"),
        (json.dumps, "which is not in the project"),
    ],
)
def test_what_a_job_could_not_import_is_refused_with_what_to_do(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(UsageError, match="a job cannot import this function") as raised:
        find_function(function, HERE)
    assert reason in raised.value.message
    assert "at the top of a module" in str(raised.value.hint)


def test_a_function_of_the_program_itself_is_refused(tmp_path: Path) -> None:
    script = "import riseml\ndef f(): pass\ntry: riseml.submit(f)\nexcept riseml.UsageError as error: print(error)\n"
    (tmp_path / "riseml.yml").write_text("project: p\ntrain: {image: x, run: a}\n")
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "f is defined in the program itself, or in a notebook" in done.stdout, done


@given(arguments=st.lists(JSON, max_size=3), named=st.dictionaries(st.from_regex("[a-z]{1,5}", fullmatch=True), JSON))
def test_arguments_go_through_riseml_yml_and_a_shell(arguments: list[object], named: dict[str, object]) -> None:
    """The line of the checked riseml.yml has the very program, whatever an argument is."""
    line = write_command(FunctionPath(".", "m", "f"), arguments, named)
    checked = check_config(
        "project: p\ntrain: {image: x, run: a, parameters: {lr: 1}}",
        "f",
        Overrides((), (("train.run", json.dumps(line)),)),
    )
    assert checked.spec is not None, checked.problems
    (run,) = checked.spec.train.run
    assert run == line
    assert "{{" not in line
    program = _read_program(line)
    loaded: dict[str, Any] = {}
    call = next(text for text in program.splitlines() if text.startswith("call = "))
    exec("import json\n" + call, loaded)  # the line of the program that reads the arguments
    assert loaded["call"] == json.loads(json.dumps([arguments, named]))


def _read_program(line: str) -> str:
    words = shlex.split(line)
    assert words[:2] == ["python", "-c"]
    return words[2]


def test_each_point_of_a_map_is_one_call() -> None:
    line = write_map_command(FunctionPath("src", "m", "f"), [{"lr": 1}, [2, 3], 4])
    program = _read_program(line)
    assert "[{{point}}]" in program
    call = next(text for text in program.splitlines() if text.startswith("call = ")).replace("[{{point}}]", "")
    loaded: dict[str, Any] = {}
    exec("import json\n" + call, loaded)  # as above
    assert loaded["call"] == [[[], {"lr": 1}], [[2, 3], {}], [[4], {}]]
    assert 'sys.path.insert(0, "src")' in program


@pytest.mark.parametrize("argument", [object(), {1, 2}, b"bytes"])
def test_an_argument_that_json_cannot_hold_is_refused(argument: object) -> None:
    with pytest.raises(UsageError, match="an argument cannot be sent to a job"):
        write_command(FunctionPath(".", "m", "f"), [argument], {})
