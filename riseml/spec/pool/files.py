"""Files that a pool.yml names: relative to its folder, there, and keys that nobody else may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from riseml.spec.yaml.problems import Path as Keys
from riseml.spec.yaml.problems import quoted
from riseml.spec.yaml.values import Settled

_MISSING = "is not there"
_MOST = 2**16  # bytes of a key; more is none


def read_file_path(settled: Settled, path: Keys, folder: Path, *, needed: bool = True) -> str | None:
    """The absolute path of a file; None without one. `needed`: it has to be there already."""
    text = settled.value_at(path)
    if text is None:
        return None
    try:
        file = folder / Path(text).expanduser()
    except RuntimeError:  # ~user of nobody
        settled.refuse(path, f"{quoted(text)} names the home of nobody", "write the whole path")
        return None
    found = Path(os.path.normpath(file))
    trouble = _trouble(found)
    if trouble is not None and (needed or trouble != _MISSING):
        settled.refuse(path, f"{found} {trouble}", "a path is relative to this file, or begins with / or ~")
    return str(found)


def read_key_path(settled: Settled, path: Keys, folder: Path, *, plain: bool = False) -> str | None:
    """The absolute path of a private key; None without one. `plain`: it must not have a passphrase."""
    name = read_file_path(settled, path, folder)
    if name is None or path in settled.bad:
        return name
    file = Path(name)
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        settled.warn(path, f"other users may read {file}", f"chmod 600 {file}")
    if plain and b"ENCRYPTED" in _read_start(file):
        settled.refuse(path, f"{file} has a passphrase, and nobody is there to type it", "give a key without one")
    return name


def _read_start(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_MOST)


def _trouble(file: Path) -> str | None:
    """Why a file cannot be read."""
    try:
        if not file.exists():
            return _MISSING
        if not file.is_file():
            return "is no file"
    except OSError as error:  # a folder that nobody may enter, a name that no file can have
        return f"cannot be read: {error.strerror}"
    return None if os.access(file, os.R_OK) else "cannot be read"
