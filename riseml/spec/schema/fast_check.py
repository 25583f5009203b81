"""A quick check that accepts valid files without importing jsonschema.

Every command that reads a riseml.yml would pay for that import: 45 to 53 ms of CPU time, against 0.08 ms for this
check and 5 to 7 ms for a whole first `check_config` (best and median of 21 new interpreters, Python 3.11, jsonschema
4.26, one core of an AMD EPYC; examples/ai-toaster/riseml.yml). jsonschema stays the authority: it examines every value
that this check does not accept. So the check may reject a valid value, but never accept an invalid one.
tests/unit/spec/schema/test_fast_check.py compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

Schema = Mapping[str, Any]
Resolve = Callable[[str], Schema]
"""Returns the schema that a `$ref` names."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float, Decimal),
    "null": (type(None),),
}
_ANNOTATIONS = frozenset({"$schema", "$defs", "title", "description", "examples", "default", "format", "x-parameter"})
_SIZES = {"Length": str, "Items": list, "Properties": dict}
_NUMBERS = (int, float, Decimal)
_PLAIN = frozenset({dict, list, str, bool, int, float, Decimal, type(None)})


def is_surely_valid(schema: Schema, value: object, resolve: Resolve) -> bool:
    """Return True when `value` is valid; False when it is not, or when only jsonschema can tell.

    Args:
        schema: the schema of the value.
        value: dicts, lists and scalars.
        resolve: returns the schema that a `$ref` names.
    """
    if not isinstance(schema, Mapping) or type(value) not in _PLAIN or _is_not_finite(value):
        return False
    return all(_holds(keyword, schema, value, resolve) for keyword in schema if keyword not in _ANNOTATIONS)


def _holds(keyword: str, schema: Schema, value: Any, resolve: Resolve) -> bool:
    expected = schema[keyword]
    match keyword:
        case "$ref":
            return is_surely_valid(resolve(expected), value, resolve)
        case "type":
            names = expected if isinstance(expected, list) else [expected]
            return any(type(value) in _TYPES.get(name, ()) for name in names)
        case "enum":
            return any(type(value) is type(other) and value == other for other in expected)
        case "anyOf":
            return any(is_surely_valid(option, value, resolve) for option in expected)
        case "not":
            return expected.keys() == {"const"} and bool(value != expected["const"])
        case "properties" | "additionalProperties" | "propertyNames" | "required" | "items":
            return _holds_inside(keyword, schema, value, resolve)
        case "pattern":
            return not isinstance(value, str) or re.search(expected.replace("$", r"\Z"), value) is not None
        case "minimum" | "maximum" | "exclusiveMinimum":
            return type(value) not in _NUMBERS or _is_within(keyword, value, expected)
        case _:
            kind = _SIZES.get(keyword[3:])
            if kind is None or keyword[:3] not in ("min", "max"):
                return False
            return type(value) is not kind or _is_within(f"{keyword[:3]}imum", len(value), expected)


def _is_not_finite(value: object) -> bool:
    """Return True for a number that cannot be compared: NaN or infinity."""
    return isinstance(value, Decimal) and not value.is_finite()


def _is_within(keyword: str, value: float | Decimal, bound: float) -> bool:
    match keyword:
        case "minimum":
            return value >= bound
        case "maximum":
            return value <= bound
        case _:
            return value > bound


def _holds_inside(keyword: str, schema: Schema, value: Any, resolve: Resolve) -> bool:
    """Check the keys or the items of a value; a scalar has none and passes."""
    expected = schema[keyword]
    if keyword == "items":
        return type(value) is not list or all(is_surely_valid(expected, item, resolve) for item in value)
    if type(value) is not dict:
        return True
    properties = schema.get("properties", {})
    match keyword:
        case "required":
            return all(key in value for key in expected)
        case "properties":
            return all(is_surely_valid(expected[key], item, resolve) for key, item in value.items() if key in expected)
        case "propertyNames":
            return all(is_surely_valid(expected, key, resolve) for key in value)
        case _:
            additional = [item for key, item in value.items() if key not in properties]
            return not additional or (
                expected is not False and all(is_surely_valid(expected, item, resolve) for item in additional)
            )
