"""Values of Python as the texts that `-p` and `--set` take."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from riseml.base.errors import UsageError


def list_pairs(values: Mapping[str, object] | None, subject: str) -> list[tuple[str, str]]:
    """Return names and texts: `{"lr": 0.1, "units": [64, 128]}` is `-p lr=0.1 -p 'units=[64, 128]'`.

    A text stays as it is, so that `{"lr": "0.1,0.01"}` is what `-p lr=0.1,0.01` is: a grid. A list is a grid, too.

    Args:
        values: by name.
        subject: `parameters` or `settings`, for messages.

    Raises:
        UsageError: they are no mapping, a name is no text, or a value is none that a file could have.
    """
    if values is None:
        return []
    if not isinstance(values, Mapping):
        raise UsageError(f"{subject} is {type(values).__name__}, not a dict", f'write {subject}={{"name": value}}')
    pairs = []
    for name, value in values.items():
        if not isinstance(name, str) or not name:
            raise UsageError(f"a name in {subject} is {name!r}", "names are texts")
        pairs.append((name, _write_value(f"{subject}[{name!r}]", value)))
    return pairs


def _write_value(subject: str, value: object) -> str:
    if isinstance(value, str):
        return value
    plain = make_plain(subject, value)
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def make_plain(subject: str, value: object) -> object:
    """Return a value with lists and dictionaries for what is like them, such as a number or an array of numpy.

    Raises:
        UsageError: it has something else, or a number that is not finite.
    """
    item = getattr(value, "tolist", None)  # numpy: one number, or a list of them
    if callable(item):
        value = item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(f"{subject} is {value}", "a parameter is a finite number; write a text for another value")
        return value
    if isinstance(value, Mapping):
        return {str(name): make_plain(subject, part) for name, part in value.items()}
    if isinstance(value, Sequence | range) and not isinstance(value, bytes | bytearray):
        return [make_plain(subject, part) for part in value]
    raise UsageError(
        f"{subject} is of type {type(value).__name__}", "give a text, a number, True or False, or a list of these"
    )
