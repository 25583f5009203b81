"""schemas/deprecated-keys.json says of keys of earlier RiseMLs what `riseml init --convert` makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from riseml.spec.config.earlier_files import convert_earlier_file
from riseml.spec.config.loader import check_config
from riseml.spec.schema.contract import CONFIG_CONTRACT
from riseml.spec.yaml.problems import format_key_path

ROWS = json.loads((Path(__file__).parents[3] / "schemas/deprecated-keys.json").read_text())["keys"]
KEYS = {format_key_path(path) for path, _ in CONFIG_CONTRACT.walk()}


def _has(value: object, path: str) -> bool:
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["key"])
def test_a_key_is_converted_as_the_table_says(row: dict[str, str | None]) -> None:
    key, instead, example = row["key"], row["instead"], row["example"]
    assert key not in KEYS
    assert instead is None or instead in KEYS
    earlier = f"project: a\n{example}\n"
    assert check_config(earlier).problems, "this version does not take the file"
    converted = convert_earlier_file(earlier, "a")
    assert check_config(converted.text).problems == ()
    assert bool(converted.left_out) == (instead is None)
    assert instead is None or _has(yaml.safe_load(converted.text), instead)


def test_the_table_has_no_key_twice() -> None:
    assert len({row["key"] for row in ROWS}) == len(ROWS) >= 15
