"""A riseml.yml with the values of the command line in it says what the file and these values said together."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.config.loader import Overrides, load_config
from riseml.spec.config.resolved import hide_variables, read_written_variables, resolve_config

CONFIG = """\
project: x   # a comment
train:
  image: python:3.11
  env: {MODE: fast, "N": "012"}
  parameters: {lr: [0.10, 1e-3], name: "007", when: 2026-08-31}
  run: &line |
    echo {{lr}} {{name}} "a: b"
    # a line of the shell
"""
EXAMPLES = sorted(Path("examples").glob("*/*.yml"))


def test_without_values_the_text_stays_as_it_is() -> None:
    assert resolve_config(CONFIG, Overrides()) == CONFIG


def test_values_of_the_command_line_are_in_the_file() -> None:
    overrides = Overrides((("lr", "0.50"),), (("train.resources.cpus", "2"), ("train.env.MODE", "slow")))
    text = resolve_config(CONFIG, overrides)
    assert load_config(text) == load_config(CONFIG, overrides=overrides)
    assert '"012"' in text
    assert read_written_variables(text) == {"MODE": "slow", "N": "012"}


@pytest.mark.parametrize("path", EXAMPLES, ids=str)
def test_the_examples_mean_the_same_when_they_are_written_again(path: Path) -> None:
    text = path.read_text()
    overrides = Overrides((), (("train.priority", "3"),))
    assert load_config(resolve_config(text, overrides)) == load_config(text, overrides=overrides)


@pytest.mark.parametrize("variables", ["{TOKEN: geheim, MODE: geheim}", "[TOKEN, MODE=geheim]", "[TOKEN, MODE]"])
def test_no_value_of_a_variable_is_left(variables: str) -> None:
    text = hide_variables(f"project: x\ntrain:\n  image: a\n  env: {variables}\n  run: b\n")
    assert "geheim" not in text
    assert [variable.name for variable in load_config(text).train.env] == ["TOKEN", "MODE"]
    assert read_written_variables(text) == {}


@pytest.mark.parametrize(
    "commands",
    [
        "  run: >\n    python train.py \\\n    --lr 0.5\n",
        "  run: python train.py \\\n    --lr 0.5\n  install: [a]\n",
        "  run:\n    - python train.py \\\n      --lr 0.5\n    - echo a\\ b\n",
        "  roles:\n    actor:\n      run: >-\n        python train.py \\\n        --lr 0.5\n",
    ],
)
def test_a_command_whose_lines_end_with_a_backslash_is_the_same_when_it_is_written_again(commands: str) -> None:
    text = f"project: x\ntrain:\n  image: a\n  env: {{MODE: geheim, NOTE: one \\\n    two}}\n{commands}"
    overrides = Overrides((), (("train.priority", "3"),))
    assert load_config(resolve_config(text, overrides)) == load_config(text, overrides=overrides)
    hidden, spec = load_config(hide_variables(text)), load_config(text)
    assert (hidden.train.run, hidden.train.roles) == (spec.train.run, spec.train.roles)
