"""Files that a pool.yml names: relative to its folder, there, and keys that nobody else may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from riseml.spec.scalars.texts import quote_text
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_MISSING = "is not there"
_MOST = 2**16  # bytes of a key; more is none


def read_file_path(file: SourceFile, path: KeyPath, folder: Path, *, needed: bool = True) -> str | None:
    """The absolute path of a file; None without one. `needed`: it has to be there already."""
    text = file.value_at(path)
    if text is None:
        return None
    try:
        target = folder / Path(text).expanduser()
    except RuntimeError:  # ~user of nobody
        file.refuse(path, f"{quote_text(text)} names the home of nobody", "write the whole path")
        return None
    found = Path(os.path.normpath(target))
    trouble = _trouble(found)
    if trouble is not None and (needed or trouble != _MISSING):
        file.refuse(path, f"{found} {trouble}", "a path is relative to this file, or begins with / or ~")
    return str(found)


def read_key_path(file: SourceFile, path: KeyPath, folder: Path, *, plain: bool = False) -> str | None:
    """The absolute path of a private key; None without one. `plain`: it must not have a passphrase."""
    name = read_file_path(file, path, folder)
    if name is None or path in file.bad:
        return name
    target = Path(name)
    if stat.S_IMODE(target.stat().st_mode) & 0o077:
        file.warn(path, f"other users may read {target}", f"chmod 600 {target}")
    if plain and b"ENCRYPTED" in _read_start(target):
        file.refuse(path, f"{target} has a passphrase, and nobody is there to type it", "give a key without one")
    return name


def _read_start(target: Path) -> bytes:
    with target.open("rb") as stream:
        return stream.read(_MOST)


def _trouble(target: Path) -> str | None:
    """Why a file cannot be read."""
    try:
        if not target.exists():
            return _MISSING
        if not target.is_file():
            return "is no file"
    except OSError as error:  # a folder that nobody may enter, a name that no file can have
        return f"cannot be read: {error.strerror}"
    return None if os.access(target, os.R_OK) else "cannot be read"
