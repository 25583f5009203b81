"""Frozen dataclasses as JSON values, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

from cattrs import Converter
from cattrs.strategies import configure_union_passthrough

Value = TypeVar("Value")


def _converter() -> Converter:
    converter = Converter(unstruct_collection_overrides={tuple: list, frozenset: sorted_values})
    converter.register_unstructure_hook(datetime, lambda moment: moment.astimezone(UTC).isoformat())
    converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
    configure_union_passthrough(str | int | float | bool | None, converter)
    return converter


def sorted_values(values: Any) -> list[Any]:
    """Return a set in a stable order, so that equal values make equal JSON."""
    return sorted(values)


_CONVERTER = _converter()


def to_json(value: object) -> Any:
    """Return a dataclass as lists, dictionaries and plain values."""
    return _CONVERTER.unstructure(value)


def from_json(value: Any, kind: type[Value]) -> Value:
    """Return the dataclass that `to_json` made the value from."""
    return _CONVERTER.structure(value, kind)
