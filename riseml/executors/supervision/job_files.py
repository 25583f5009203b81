"""Records in folders where the code of a job can put anything in their place: read in bounded time and memory, and
checked field by field.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from riseml.spec.scalars.texts import is_valid_text

_LONGEST_RECORD = 16 << 20  # bytes; one of a gang of 1,000 roles has some hundred KiB
_LAST_TIME = 253402300800.0  # seconds since the epoch at the end of year 9999
_LARGEST_COUNT = 2**31
_NO_RECORD = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENXIO)

Check = Callable[[object], bool]


def read_bytes(path: Path, most: int = _LONGEST_RECORD) -> bytes:
    """Return the beginning of a file. A FIFO has none, with and without a writer.

    Raises:
        OSError: there is no such file.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        return file.read(most) or b""


def says_no_record(error: OSError) -> bool:
    """Return True when an error of `read_record` says that there is no record, or that the code of a job has put
    something else in its place. Any other error says nothing: a disk, a network or this process has a problem.
    """
    return error.errno in _NO_RECORD


def read_record(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        OSError: there is no such file.
        ValueError: the file holds something else.
    """
    try:
        record = json.loads(read_bytes(path))
    except RecursionError as error:
        raise ValueError(f"{path} is nested too deep") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path} holds no JSON object")
    return record


def keep_valid(record: object, checks: Mapping[str, Check]) -> dict[str, Any]:
    """Return the fields of a record that pass their check; a field without a check stays."""
    if not isinstance(record, dict):
        return {}
    return {name: value for name, value in record.items() if name not in checks or checks[name](value)}


def is_text(value: object) -> bool:
    """Return True for a text that a store can keep."""
    return isinstance(value, str) and is_valid_text(value)


def is_count(value: object) -> bool:
    """Return True for an exit code, a port or a pid."""
    return isinstance(value, int) and 0 <= value < _LARGEST_COUNT


def is_time(value: object) -> bool:
    """Return True for seconds since the epoch that are a date."""
    return isinstance(value, int | float) and 0 <= value < _LAST_TIME
