"""The manifest of a saved output: one object in the store that names every file, with its size and SHA-256.

The server writes it last. So every file that it names is in the store, even after a server or a store was killed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from riseml.base.errors import EngineError
from riseml.base.records import dataclass
from riseml.job_programs.folder_contents import PART
from riseml.job_programs.folder_paths import FilesError, split_path

MANIFEST = "riseml-saved.json"
"""The name of the manifest in the folder of an output."""

ASIDE = ".riseml-saving"
"""The folder for changed files: each moves to its own place once the manifest names it here."""

MOST_FILES = 100_000
"""Files of one output."""

LARGEST_MANIFEST = 1 << 26
"""Bytes of a manifest: 671 for each of 100,000 files."""

_LARGEST = 1 << 63  # number that a disk and a database take
_LATEST = _LARGEST * 10**9  # nanoseconds since 1970 that a disk takes
_SHA256 = re.compile("[0-9a-f]{64}")
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SavedFile:
    """One file in the store."""

    path: str  # below OUTPUT_DIR, as in `folder_paths`
    size: int  # bytes
    changed: int  # when the job changed it, nanoseconds since 1970; negative: before
    executable: bool
    sha256: str
    key: str  # where it is, below the folder of the output
    tag: str = ""  # changes when the file in OUTPUT_DIR does; the server knows it, the manifest does not


@dataclass(frozen=True, slots=True)
class SaveManifest:
    """The saved files of one output."""

    owner: str  # whose output it is: the server and its experiment
    experiment: str  # for people: `paul.4`
    saved_at: str  # RFC 3339; empty: the place is claimed, and nothing is saved yet
    attempt: int
    files: tuple[SavedFile, ...]

    @property
    def keys(self) -> frozenset[str]:
        """Where the files are."""
        return frozenset(file.key for file in self.files)


def write_manifest(manifest: SaveManifest) -> bytes:
    """Return the bytes of a manifest.

    Raises:
        EngineError: its names are so long that no server would read it (permanent).
    """
    files = [
        {
            "path": file.path,
            "size": file.size,
            "sha256": file.sha256,
            "changed": file.changed,
            "executable": file.executable,
            "key": file.key,
        }
        for file in manifest.files
    ]
    head = {
        "format": _FORMAT,
        "owner": manifest.owner,
        "experiment": manifest.experiment,
        "saved_at": manifest.saved_at,
        "attempt": manifest.attempt,
    }
    data = json.dumps({**head, "files": files}, indent=0, ensure_ascii=False).encode()
    if len(data) > LARGEST_MANIFEST:
        text = f"the names of the output's files are too long: a manifest has at most {LARGEST_MANIFEST:,} bytes"
        raise EngineError(text, "name fewer of them in `only`, or give them shorter names", permanent=True)
    return data


def read_manifest(data: bytes, place: str) -> SaveManifest:
    """Return a manifest. Every user of the store may have written it, so that each field is checked.

    Raises:
        EngineError: it is not a manifest (permanent).
    """
    try:
        document: Any = json.loads(data)
        if document["format"] != _FORMAT or len(document["files"]) > MOST_FILES:
            raise ValueError(document["format"])
        files = tuple(_read_file(row) for row in document["files"])
        owner = document["owner"]
        experiment = document["experiment"]
        saved_at = document["saved_at"]
        texts = (owner, experiment, saved_at)
        if not all(isinstance(text, str) for text in texts) or len({file.path for file in files}) < len(files):
            raise ValueError(texts)
        if abs(attempt := int(document["attempt"])) >= _LARGEST:
            raise ValueError(attempt)
        return SaveManifest(owner, experiment, saved_at, attempt, files)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, FilesError):
        hint = "remove it if you do not need what it names; the next copy writes it again"
        raise EngineError(f"{place}/{MANIFEST} is not a manifest of riseml", hint, permanent=True) from None


def _read_file(row: Any) -> SavedFile:
    file = SavedFile(
        str(row["path"]),
        int(row["size"]),
        int(row["changed"]),
        row["executable"] is True,
        str(row["sha256"]),
        str(row["key"]),
    )
    names = split_path(file.path)
    is_usable = names and not names[-1].startswith(PART.encode()) and _SHA256.fullmatch(file.sha256)
    are_numbers_usable = 0 <= file.size < _LARGEST and -_LATEST <= file.changed < _LATEST
    if not is_usable or not are_numbers_usable or not is_key(file.key):
        raise ValueError(file)
    return file


def is_key(key: str) -> bool:
    """Return True for a path below the folder of an output that an object can have."""
    return key.isprintable() and not any(name in ("", ".", "..") for name in key.split("/"))


def measure_files(files: Iterable[SavedFile]) -> int:
    """Return the total bytes of files."""
    return sum(file.size for file in files)
