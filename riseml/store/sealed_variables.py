"""The values of the variables that users pass on, as the store has them: sealed with a key that only the home has.

The database alone (with its administrator, in a backup, in the free space of its disk) gives none of these values away;
those that users write into a riseml.yml are in the text of that file there. A user who can read the home has the key.

AES-256-GCM of the package `cryptography` seals them, together with the name of the variable, so that no value can be
moved to another name.
"""

from __future__ import annotations

import base64
import os
import secrets
from contextlib import suppress
from pathlib import Path

from riseml.errors import EngineError, StoreError
from riseml.folders import read_private_file
from riseml.model import Environment
from riseml.store.packs import flush_folder

KEY_FILE = "variables.key"
"""The name of the file in RISEML_HOME."""

_PREFIX = "sealed:1:"  # what earlier versions have stored has none
_KEY, _NONCE = 32, 12  # bytes
_MOST_READ = 1024  # bytes of the file of the key


def seal_variables(home: Path, variables: Environment) -> Environment:
    """Return variables with sealed values; makes the key of the home when it has none.

    Raises:
        StoreError: the key cannot be written, or the home has one that is damaged.
        Refused: another user may read the key.
    """
    if not variables:
        return ()
    key = _read_key(home) or _make_key(home)
    if len(key) != _KEY:
        raise StoreError(
            f"{home / KEY_FILE} is damaged: it has {len(key)} bytes, and a key has {_KEY}",
            "restore that file from a backup; or remove it: experiments that wait with variables then fail",
        )
    return tuple((name, _seal(key, name, value)) for name, value in variables)


def open_variables(home: Path, variables: Environment) -> Environment:
    """Return variables with their values.

    Raises:
        EngineError: they were sealed with another key (permanent).
        Refused: another user may read the key.
    """
    if not any(value.startswith(_PREFIX) for _, value in variables):
        return variables
    key = _read_key(home) or b""
    return tuple((name, _open(key, name, value)) for name, value in variables)


def _seal(key: bytes, name: str, value: str) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 9 MiB that most servers do without

    nonce = secrets.token_bytes(_NONCE)
    hidden = AESGCM(key).encrypt(nonce, value.encode("utf-8", "surrogateescape"), name.encode())
    return _PREFIX + base64.b64encode(nonce + hidden).decode("ascii")


def _open(key: bytes, name: str, value: str) -> str:
    if not value.startswith(_PREFIX):
        return value
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        data = base64.b64decode(value.removeprefix(_PREFIX), validate=True)
        opened = AESGCM(key).decrypt(data[:_NONCE], data[_NONCE:], name.encode())
    except (ValueError, InvalidTag) as error:
        raise EngineError(
            f"the value of {name} cannot be read: {KEY_FILE} in RISEML_HOME is not the key that it was stored with",
            "restore that file from a backup, or run `riseml train` again",
            permanent=True,
        ) from error
    return opened.decode("utf-8", "surrogateescape")


def _read_key(home: Path) -> bytes | None:
    return read_private_file(home / KEY_FILE, _MOST_READ)


def _make_key(home: Path) -> bytes:
    """Write a new key, unless another thread does at this moment; return the one that the home has."""
    part = home / f"{KEY_FILE}.{secrets.token_hex(4)}"
    try:
        _write_key(part)
        with suppress(FileExistsError):
            os.link(part, home / KEY_FILE)
        flush_folder(home)
        made = _read_key(home)
    except OSError as error:
        raise StoreError(f"{home / KEY_FILE} cannot be written: {error.strerror}", "free some space there") from error
    finally:
        part.unlink(missing_ok=True)
    if not made:
        raise StoreError(f"{home / KEY_FILE} is empty or gone", "remove it, and run the command again")
    return made


def _write_key(path: Path) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_KEY))
        file.flush()
        os.fsync(file.fileno())
