"""Schema, dataclasses, reference and example of pool.yml agree with each other."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from riseml.base.names import HostName
from riseml.base.states import Network
from riseml.spec.pool import types
from riseml.spec.pool.loader import check_pool
from riseml.spec.scalars.engine_url import parse_engine_url
from riseml.spec.scalars.texts import BadText
from riseml.spec.schema.contract import POOL_CONTRACT
from riseml.spec.yaml.problems import KeyPath

ROOT = Path(__file__).parents[3]


KEYS = dict(POOL_CONTRACT.walk())


IDS = [".".join(map(str, path)) for path in KEYS]


@given(
    st.sampled_from(sorted(KEYS, key=str)), st.sampled_from(["~", "[]", "{}", "''", "x", "-1", "[~]", "{a: ~}", "yes"])
)
@settings(deadline=None, max_examples=200)
def test_any_value_anywhere_is_read_or_refused(keys: KeyPath, value: str) -> None:
    text = value
    for part in reversed(keys):
        text = f"[{text}]" if isinstance(part, int) else f"{{{part}: {text}}}"
    checked = check_pool(text, "pool.yml")
    assert (checked.spec is None) == any(problem.severity.value == "error" for problem in checked.problems)


def test_the_schema_is_valid_json_schema() -> None:
    Draft202012Validator.check_schema(POOL_CONTRACT.schema)
    assert POOL_CONTRACT.schema["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("keys", KEYS, ids=IDS)
def test_every_key_has_title_description_and_examples(keys: KeyPath) -> None:
    schema = KEYS[keys]
    assert {"title", "description", "examples", "type"} <= set(schema)
    assert schema["description"].endswith(".")
    if schema.get("format") == "gpus":
        return  # an index is a number in JSON, and a string in riseml
    validator = Draft202012Validator({**schema, "$defs": POOL_CONTRACT.schema["$defs"]})
    for example in [*schema["examples"], *([schema["default"]] if "default" in schema else [])]:
        assert not list(_errors(validator, example)), example


def _errors(validator: Draft202012Validator, example: Any) -> Any:
    """Return the errors without those of GPU ids."""
    return (error for error in validator.iter_errors(example) if "gpus" not in error.absolute_path)


def test_no_map_accepts_unknown_keys() -> None:
    for keys, schema in [((), POOL_CONTRACT.schema), (("hosts", 0), POOL_CONTRACT.at(("hosts", 0))), *KEYS.items()]:
        if "properties" in schema:
            assert schema["additionalProperties"] is False, keys


@pytest.mark.parametrize(
    ("keys", "cls", "other"),
    [
        ((), types.PoolSpec, {"storage": {"output", "data"}}),
        (("hosts", 0), types.HostSpec, {}),
        (("hosts", 0, "tls"), types.Tls, {}),
        (("storage", "output"), types.Volume, {"volume": {"name"}}),
        (("storage", "data"), types.Volume, {"volume": {"name"}}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_sections_have_the_fields_of_their_dataclass(keys: KeyPath, cls: Any, other: dict[str, set[str]]) -> None:
    known = set(POOL_CONTRACT.at(keys)["properties"])
    assert known.difference(other).union(*other.values()) == {field.name for field in fields(cls)}


def test_choices_and_defaults_are_those_of_the_dataclasses() -> None:
    default = types.PoolSpec(())
    assert set(POOL_CONTRACT.at(("network",))["enum"]) == {member.value for member in Network} - {Network.BRIDGE.value}
    assert POOL_CONTRACT.at(("network",))["default"] == default.network.value
    assert POOL_CONTRACT.at(("storage", "output", "driver"))["default"] == types.Volume("").driver
    assert POOL_CONTRACT.at(("hosts", 0, "insecure"))["default"] is types.HostSpec(HostName(""), "").insecure


@pytest.mark.parametrize("text", ["unix:///a", "ssh://a", "ssh://u@a:22/s", "tcp://a:1", "tcp://a", "a", "http://a"])
def test_the_pattern_accepts_the_urls_that_the_reader_accepts(text: str) -> None:
    matches = re.search(POOL_CONTRACT.at(("hosts", 0, "url"))["pattern"], text) is not None
    try:
        parse_engine_url(text)
    except BadText:
        assert not matches
    else:
        assert matches


def test_the_example_file_is_valid_and_shows_every_key(pool_path: Path) -> None:
    text = (ROOT / "pool.yml.example").read_text(encoding="utf-8")
    assert check_pool(text, pool_path).problems == ()
    commented = set(re.findall(r"(?m)^[ #-]*([a-z_]+):[^#\n]*#", text))
    assert {str(keys[-1]) for keys in KEYS} - commented == set()
