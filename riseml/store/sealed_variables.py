"""The values of the variables that users pass on, as the store has them: sealed with a key that only the home has.

Whoever gets the database alone (its administrator, a backup, the free space of its disk) gets no value. A user who can
read the home has the key, too.

Python's standard library has no cipher, so this is the usual construction from what it has: HMAC-SHA-256 of a random
nonce and a counter as the key stream, and an HMAC of name, nonce and sealed bytes, with another key, as the proof.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from riseml.errors import EngineError, StoreError
from riseml.folders import read_private_file
from riseml.model import Environment

KEY_FILE = "variables.key"
"""The name of the file in RISEML_HOME."""

_PREFIX = "sealed:1:"  # what earlier versions have stored has none
_KEY, _NONCE, _PROOF = 32, 16, 32  # bytes
_HASH = "sha256"
_BLOCK = 32  # bytes of one HMAC


def seal_variables(home: Path, variables: Environment) -> Environment:
    """Return variables with sealed values; makes the key of the home when it has none.

    Raises:
        StoreError: the key cannot be written.
        Refused: another user may read the key.
    """
    if not variables:
        return ()
    key = _read_key(home) or _make_key(home)
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
    nonce = secrets.token_bytes(_NONCE)
    hidden = nonce + _apply_stream(key, nonce, value.encode("utf-8", "surrogateescape"))
    return _PREFIX + base64.b64encode(_prove(key, name, hidden) + hidden).decode("ascii")


def _open(key: bytes, name: str, value: str) -> str:
    if not value.startswith(_PREFIX):
        return value
    try:
        data = base64.b64decode(value.removeprefix(_PREFIX), validate=True)
    except ValueError:
        data = b""
    proof, hidden = data[:_PROOF], data[_PROOF:]
    if not key or not hmac.compare_digest(proof, _prove(key, name, hidden)):
        raise EngineError(
            f"the value of {name} cannot be read: {KEY_FILE} in RISEML_HOME is not the key that it was stored with",
            "restore that file from a backup, or run it again",
            permanent=True,
        )
    return _apply_stream(key, hidden[:_NONCE], hidden[_NONCE:]).decode("utf-8", "surrogateescape")


def _apply_stream(key: bytes, nonce: bytes, data: bytes) -> bytes:
    """Return data combined with the key stream; the same call undoes it."""
    own = _derive(key, b"stream")
    blocks = range(-(-len(data) // _BLOCK))
    stream = b"".join(hmac.digest(own, nonce + number.to_bytes(8, "big"), _HASH) for number in blocks)
    return bytes(one ^ other for one, other in zip(data, stream, strict=False))


def _prove(key: bytes, name: str, hidden: bytes) -> bytes:
    return hmac.digest(_derive(key, b"proof"), name.encode() + b"\0" + hidden, _HASH)


def _derive(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, b"riseml variables " + purpose, _HASH)


def _read_key(home: Path) -> bytes | None:
    return read_private_file(home / KEY_FILE, _KEY)


def _make_key(home: Path) -> bytes:
    """Write a new key, unless another thread does at this moment; return the one that the home has."""
    part = home / f"{KEY_FILE}.{secrets.token_hex(4)}"
    try:
        _write_key(part)
        with suppress(FileExistsError):
            os.link(part, home / KEY_FILE)
        _sync_folder(home)
        made = _read_key(home)
    except OSError as error:
        raise StoreError(f"{home / KEY_FILE} cannot be written: {error.strerror}", "free some space there") from error
    finally:
        part.unlink(missing_ok=True)
    if not made:
        raise StoreError(f"{home / KEY_FILE} is empty or gone", "remove it, and run it again")
    return made


def _write_key(path: Path) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_KEY))
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
