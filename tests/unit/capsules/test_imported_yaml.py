"""The riseml.yml of an import: as a person would write it, and read back as it was."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from riseml.capsules.imported_yaml import write_config


def test_it_is_written_as_a_person_would() -> None:
    config = {"project": "é", "train": {"run": "cd /x\npython train.py\n", "args": ["a", 1], "name": "x " * 100}}
    assert write_config(config) == (
        f"project: é\ntrain:\n  run: |\n    cd /x\n    python train.py\n  args:\n  - a\n  - 1\n  name: '{'x ' * 100}'\n"
    )


@pytest.mark.parametrize(
    "value",
    ["yes", "007", "1e3", "", "a: b", "#x", "two\nlines", " \n", "\ttab\nx ", "trailing \n ", None, 0.5],
)
def test_every_value_is_read_back_as_it_was(value: Any) -> None:
    assert yaml.safe_load(write_config({"b": value, "a": [value]})) == {"b": value, "a": [value]}
