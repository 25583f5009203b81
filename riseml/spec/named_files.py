"""Check the files that a pool.yml or a server.yml names: they exist, and other users cannot read private keys."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from riseml.spec.scalars.texts import quote_text
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_MISSING = "does not exist"
_MOST = 2**16  # bytes of a key that are read


def locate_file(file: SourceFile, path: KeyPath, folder: Path) -> str | None:
    """Return the absolute path that a key names, whether it exists or not; None when the key is missing or unusable."""
    text = file.value_at(path)
    if text is None:
        return None
    try:
        target = folder / Path(text).expanduser()
    except RuntimeError:  # `~name` of an unknown user
        file.refuse(path, f"{quote_text(text)} names the home of an unknown user", "write the whole path")
        return None
    return os.path.normpath(target)


def read_file_path(file: SourceFile, path: KeyPath, folder: Path, *, needed: bool = True) -> str | None:
    """Return the absolute path of a file; None when the key is missing. `needed`: the file must exist already."""
    name = locate_file(file, path, folder)
    if name is None:
        return None
    trouble = _explain_unreadable(Path(name))
    if trouble is not None and (needed or trouble != _MISSING):
        file.refuse(path, f"{name} {trouble}", "a path is relative to this file, or begins with / or ~")
    return name


def read_key_path(file: SourceFile, path: KeyPath, folder: Path, *, plain: bool = False) -> str | None:
    """Return the absolute path of a private key; None when the key of the file is missing. `plain`: no passphrase is
    allowed."""
    name = read_file_path(file, path, folder)
    if name is None or path in file.bad:
        return name
    target = Path(name)
    if _is_open_to_others(target):
        file.warn(path, f"other users can read {target}", f"run `chmod 600 {target}`")
    if plain:
        _refuse_passphrase(file, path, target)
    return name


def read_secret_path(file: SourceFile, path: KeyPath, folder: Path, *, is_key: bool = False) -> str | None:
    """Return the absolute path of a secret that other users must not read; None when the key of the file is missing.
    `is_key`: it is a private key, which has no passphrase."""
    name = read_file_path(file, path, folder)
    if name is None or path in file.bad:
        return name
    target = Path(name)
    if _is_open_to_others(target):
        file.refuse(path, f"other users can read {target}", f"run `chmod 600 {target}`")
    elif is_key:
        _refuse_passphrase(file, path, target)
    return name


def _is_open_to_others(target: Path) -> bool:
    return bool(stat.S_IMODE(target.stat().st_mode) & 0o077)


def _refuse_passphrase(file: SourceFile, path: KeyPath, target: Path) -> None:
    if b"ENCRYPTED" in _read_start(target):
        file.refuse(path, f"{target} has a passphrase, which the server cannot enter", "use a key without one")


def _read_start(target: Path) -> bytes:
    with target.open("rb") as stream:
        return stream.read(_MOST)


def _explain_unreadable(target: Path) -> str | None:
    """Return why a file cannot be read; None when it can."""
    try:
        if not target.exists():
            return _MISSING
        if not target.is_file():
            return "is not a file"
    except OSError as error:  # a folder without permission, a name that is too long
        return f"cannot be read: {error.strerror}"
    return None if os.access(target, os.R_OK) else "cannot be read"
