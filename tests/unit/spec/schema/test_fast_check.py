"""The fast check accepts the documented files, and never accepts what jsonschema would refuse."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from riseml.spec.schema.contract import CONFIG_CONTRACT, POOL_CONTRACT, FileContract
from riseml.spec.schema.fast_check import is_surely_valid
from riseml.spec.yaml.document import parse_document
from riseml.spec.yaml.values import read_values
from tests.unit.spec.examples import DISTRIBUTED, EXAMPLES

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 10**6)
    | st.floats(allow_nan=True)
    | st.decimals(-10, 10)
    | st.sampled_from([Decimal("NaN"), Decimal("Infinity")])
    | st.sampled_from(["", "a", "16GiB", "1.5", "10s", "a b", "x\n", "lr", "x" * 201, "tensorflow", "on", "{{lr}}"])
)


def resolve(contract: FileContract, render_config_reference: str) -> Any:
    return contract.schema["$defs"][render_config_reference.removeprefix("#/$defs/")]


def file(text: str) -> Any:
    root = parse_document(text, "riseml.yml").root
    assert root is not None
    return read_values(root, CONFIG_CONTRACT.resolve(CONFIG_CONTRACT.schema), CONFIG_CONTRACT.below).value


def agree(contract: FileContract, value: Any, schema: Any = None) -> bool:
    """Return what the fast check says; jsonschema must not disagree."""
    part = contract.schema if schema is None else {**schema, "$defs": contract.schema["$defs"]}
    sure = is_surely_valid(part, value, lambda render_config_reference: resolve(contract, render_config_reference))
    if sure:
        errors = list(Draft202012Validator(part).iter_errors(value))
        assert not errors, f"{value!r}: {errors[0].message}"
    return sure


@pytest.mark.parametrize("name", [*EXAMPLES, "distributed"])
def test_documented_files_are_surely_valid(name: str) -> None:
    assert agree(CONFIG_CONTRACT, file(EXAMPLES.get(name, DISTRIBUTED)))


@given(st.data())
def test_a_file_with_one_changed_value_is_never_wrongly_accepted(data: st.DataObject) -> None:
    """Change one value of a valid file, remove a key, or add an unknown one."""
    value = file(data.draw(st.sampled_from([*EXAMPLES.values(), DISTRIBUTED])))
    inside = value
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        key = data.draw(st.sampled_from(keys)) if keys else "x"
        deeper = inside[key] if keys and isinstance(inside[key], (dict, list)) and inside[key] else None
        if deeper is None or data.draw(st.booleans()):
            break
        inside = deeper
    match data.draw(st.sampled_from(["other", "lost", "unknown"])):
        case "lost" if keys:
            del inside[key]
        case "unknown" if isinstance(inside, dict):
            inside[data.draw(st.sampled_from(["other", "", "a b", "retry", "mem"]))] = data.draw(SCALARS)
        case _ if keys:
            inside[key] = data.draw(SCALARS | st.just([]) | st.just({}) | st.lists(SCALARS, max_size=2))
    agree(CONFIG_CONTRACT, value)


@pytest.mark.parametrize("contract", [CONFIG_CONTRACT, POOL_CONTRACT], ids=lambda contract: contract.name)
@given(data=st.data())
def test_any_value_of_any_key_is_never_wrongly_accepted(contract: FileContract, data: st.DataObject) -> None:
    places = [schema for _, schema in contract.walk()]
    value = data.draw(SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from("abc"), SCALARS))
    for schema in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=5)):
        agree(contract, value, schema)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, True),
        ({"type": "number"}, False),
        ({"enum": [1]}, True),
        ({"not": {"const": True}}, True),
        ({"not": {"type": "string"}}, "a"),
        ({"pattern": "^a$"}, "a\n"),
        ({"minimum": 0}, float("nan")),
        ({"uniqueItems": True}, [1, 1]),
        ({"const": 1}, 2),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}),
        ({"items": False}, [1]),
        ({"patternProperties": {"a": {"type": "string"}}}, {"a": 1}),
    ],
)
def test_invalid_values_and_unknown_keywords_are_not_accepted(schema: dict[str, Any], value: Any) -> None:
    assert not is_surely_valid(schema, value, lambda render_config_reference: {})


def test_a_valid_file_does_not_import_jsonschema() -> None:
    load = "import sys; from riseml.spec.config.loader import check_config"
    program = f"{load}; print(check_config(sys.argv[1]).spec is not None, *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, EXAMPLES["image with install"]], capture_output=True, text=True, check=True
    )
    right, *modules = done.stdout.split()
    assert right == "True"
    assert "jsonschema" not in modules
