"""The digests of API keys, as the store has them: keyed with a secret that only the home has.

The database alone (with its administrator, in a backup) does not say whether a text is a key of a user.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from riseml.base.errors import StoreError, advise_on_write
from riseml.base.folders import read_private_file
from riseml.store.projects.packs import flush_folder

SECRET_FILE = "accounts.key"
"""The name of the file in RISEML_HOME."""

_SECRET = 32  # bytes
_PERSON = b"riseml api key"  # BLAKE2's name for what is computed: no other digest of the same secret is equal


class KeyDigests:
    """Computes the digests of one server.

    Args:
        home: has the file of the secret, which is made with the first digest.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._secret: bytes | None = None

    def compute_digest(self, key: str) -> str:
        """Return the digest of a key; of any other text, too.

        Raises:
            StoreError: the file of the secret cannot be written, or is damaged.
            Refused: another user may read it.
        """
        if self._secret is None:
            self._secret = _read_secret(self._home) or _make_secret(self._home)
        data = key.encode("utf-8", "surrogateescape")
        return hashlib.blake2b(data, key=self._secret, digest_size=32, person=_PERSON).hexdigest()


def _read_secret(home: Path) -> bytes | None:
    path = home / SECRET_FILE
    content = read_private_file(path, 2 * _SECRET)
    if content is not None and len(content) != _SECRET:
        raise StoreError(
            f"{path} is damaged: it has {len(content)} bytes, not {_SECRET}",
            "restore that file from a backup; or remove it, and give every user a new key",
        )
    return content


def _make_secret(home: Path) -> bytes:
    """Write a new secret, unless another process does at this moment; return the one that the home has."""
    part = home / f"{SECRET_FILE}.{secrets.token_hex(4)}"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_SECRET))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(part, home / SECRET_FILE)
        flush_folder(home)
    except OSError as error:
        raise StoreError(f"{home / SECRET_FILE} cannot be written: {error.strerror}", advise_on_write(error)) from error
    finally:
        part.unlink(missing_ok=True)
    secret = _read_secret(home)
    if secret is None:
        raise StoreError(f"{home / SECRET_FILE} is gone", "run the command again")
    return secret
