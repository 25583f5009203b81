"""Frozen dataclasses as JSON values, and back.

msgspec reads a record in a ninth of the time that a converter in Python takes after `json.loads`: a server that starts
with 10,000 active experiments reads 60,000 records.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

Value = TypeVar("Value")


def to_json(value: object) -> Any:
    """Return a dataclass as tuples, dictionaries and plain values; equal values give equal JSON."""
    return msgspec.to_builtins(value, order="deterministic")


def from_json(value: Any, kind: type[Value]) -> Value:
    """Return the dataclass that `to_json` made the value from.

    Raises:
        ValueError: the value is of another kind.
    """
    return msgspec.convert(value, kind)


def parse_json(text: str, kind: type[Value]) -> Value:
    """Return the dataclass whose JSON this text is; faster than `from_json` of what the text stands for.

    Raises:
        ValueError: the text is no JSON, or of another kind.
    """
    return msgspec.json.decode(text, type=kind)
