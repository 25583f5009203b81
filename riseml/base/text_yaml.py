"""YAML whose values stay as they are written: a secret of digits is not a number."""

from __future__ import annotations

from typing import Any

import yaml

_YES = frozenset({"true", "yes", "on"})
_NO = frozenset({"false", "no", "off"})
_NOTHING = frozenset({"", "~", "null"})


class _TextLoader(yaml.SafeLoader):
    """Reads every value as text. Only merge keys (`<<`) are special."""

    yaml_implicit_resolvers = {"<": yaml.SafeLoader.yaml_implicit_resolvers["<"]}  # noqa: RUF012  # PyYAML reads it


def load_texts(data: bytes) -> Any:
    """Return the mappings, lists and texts of a file.

    Raises:
        ValueError: it is not YAML, or too deep.
    """
    try:
        return yaml.load(data, _TextLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("it is not YAML") from error


def is_nothing(value: Any) -> bool:
    """Return True for a key without a value."""
    return isinstance(value, str) and value in _NOTHING


def read_switch(value: Any) -> bool | None:
    """Return the meaning of a text in YAML 1.1, such as `true` or `no`; None: it is not a switch."""
    word = value.lower() if isinstance(value, str) else ""
    return True if word in _YES else False if word in _NO else None
