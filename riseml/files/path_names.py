"""Names of files as people read and type them."""

from __future__ import annotations

import os

from riseml.job_programs.folder_paths import decode_name, encode_name


def to_text(path: str) -> str:
    """Return a path as Python's own functions take it; `--json` shows it in this form."""
    return os.fsdecode(decode_name(path))


def to_path(text: str) -> str:
    """Return a text that the user has typed as a path of `folder_paths`."""
    return encode_name(os.fsencode(text))


def join_paths(*parts: str) -> str:
    """Return a path from its parts; an empty part adds nothing."""
    return "/".join(part for part in parts if part)
