"""The values of variables that users pass on, of secrets and of registries, as the store has them: sealed with a key
that the store does not have.

The database alone (with its administrator, in a backup, in the free space of its disk) gives none of these values away;
those that users write into a riseml.yml are in the text of that file there. A user who can read the file of the key has
all of them. It is `variables.key` of the home, unless server.yml names another file with `secrets_key`.

AES-256-GCM of the package `cryptography` seals them, over the server, the user and number of the experiment, and the
name of the variable, or over the owner and name of the secret: no value opens in another place. The experiments of a
set have one number.

The file of keys is `_MARK` and keys of 32 bytes: the first one seals, and each of them opens. There are two while
values are sealed again (`VariableSeals.rotate`). A file of 32 bytes is that of an earlier version, whose values were
sealed over the name alone, or not at all: the server seals them again when it starts, and from then on opens no such
value.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from riseml.base.errors import EngineError, StoreError, advise_on_write
from riseml.base.folders import read_private_file
from riseml.base.records import dataclass
from riseml.base.settings import Settings
from riseml.model import Environment, Experiment
from riseml.store.projects.packs import flush_folder

Reseal = Callable[[str, int, Environment], Environment]
"""Returns what the store has from now on, for a user, a number and what it has now."""

Place = tuple[str, ...]
"""What a value belongs to, such as the kind, the owner and the name of a secret. No part has a NUL."""

ResealText = Callable[[Place, str], str]
"""Returns what the store has from now on, for a place and what it has now."""

_MARK = b"riseml keys 2\n"
_PREFIX = "sealed:2:"
_EARLIER_PREFIX = "sealed:1:"  # what still earlier versions have stored has none
_KEY = 32  # bytes
_NONCE = 12  # bytes
_MOST_READ = 1024  # bytes of the file of the keys


@dataclass(frozen=True, slots=True)
class VariableSeals:
    """Seals and opens the values of one server."""

    file: Path  # of the keys
    server: str  # its id
    former: Path | None = None  # the file of keys before server.yml named another: its keys open, and seal nothing

    def seal(self, user: str, number: int, variables: Environment) -> Environment:
        """Return variables with sealed values; makes the key of the home when it has none.

        Args:
            user: of the experiment.
            number: of the experiment, or of its set.
            variables: with their values.

        Raises:
            StoreError: the key cannot be written, or the home has one that is damaged.
            Refused: another user may read the key.
        """
        if not variables:
            return ()
        return self._seal_with(self._choose_key(), user, number, variables)

    def seal_text(self, place: Place, value: str) -> str:
        """Return one value, sealed for a place.

        Raises:
            StoreError, Refused: as `seal`.
        """
        return _seal(self._choose_key(), self._name_place(place), value)

    def open_text(self, place: Place, stored: str) -> str:
        """Return a value that `seal_text` has sealed for the same place.

        Raises:
            EngineError: it was sealed with another key, for another place, or not at all (permanent).
            Refused: another user may read the key.
        """
        return _open(self._list_opening_keys(), self._name_place(place), stored, self.file)

    def open(self, experiment: Experiment) -> Environment:
        """Return the variables of an experiment with their values.

        Raises:
            EngineError: they were sealed with another key, for another experiment, or not at all (permanent).
            Refused: another user may read the key.
        """
        if not experiment.environment:
            return ()
        keys = self._list_opening_keys()
        user = experiment.owner.user
        number = experiment.number
        return tuple(
            (name, _open(keys, self._name(user, number, name), value, self.file))
            for name, value in experiment.environment
        )

    def seal_earlier_values(self, reseal_all: Callable[[Reseal], None]) -> None:
        """Seal what an earlier version has stored; does nothing when this was done before.

        Args:
            reseal_all: replaces every value of the store in one transaction.

        Raises:
            StoreError, Refused: as `seal`.
        """
        keys, is_current = self._read_keys()
        if is_current:
            return
        key = keys[0] if keys else self._make_key(mark=b"")
        opening = [key, *self._read_former_keys()]

        def reseal(user: str, number: int, stored: Environment) -> Environment:
            opened = tuple(
                (name, _open_earlier(opening, self._name(user, number, name), value, self.file))
                for name, value in stored
            )
            return self._seal_with(key, user, number, opened)

        reseal_all(reseal)
        self._write_keys([key])

    def rotate(
        self, reseal_all: Callable[[Reseal], None], reseal_texts: Callable[[ResealText], None] | None = None
    ) -> None:
        """Replace the key, and seal every value of the store with the new one. A server that dies meanwhile leaves both
        keys, and every value opens.

        Args:
            reseal_all: replaces the variables of all experiments in one transaction.
            reseal_texts: replaces all that `seal_text` has sealed in one transaction; None: there is none.

        Raises:
            StoreError, Refused: as `seal`.
        """
        keys = self._find_keys()
        fresh = secrets.token_bytes(_KEY)
        self._write_keys([fresh, *keys])
        keys += self._read_former_keys()

        def reseal(user: str, number: int, stored: Environment) -> Environment:
            opened = tuple(
                (name, _open(keys, self._name(user, number, name), value, self.file)) for name, value in stored
            )
            return self._seal_with(fresh, user, number, opened)

        def reseal_text(place: Place, stored: str) -> str:
            name = self._name_place(place)
            return _seal(fresh, name, _open(keys, name, stored, self.file))

        reseal_all(reseal)
        if reseal_texts is not None:
            reseal_texts(reseal_text)
        self._write_keys([fresh])

    def _name(self, user: str, number: int, name: str) -> bytes:
        """Return the place of the value of a variable."""
        return self._name_place((user, str(number), name))

    def _name_place(self, place: Place) -> bytes:
        """Return the place of a value, which is sealed with it."""
        return "\0".join((self.server, *place)).encode("utf-8", "surrogateescape")

    def _choose_key(self) -> bytes:
        """Return the key that seals; make it when there is none."""
        return (self._find_keys() or [self._make_key()])[0]

    def _seal_with(self, key: bytes, user: str, number: int, variables: Environment) -> Environment:
        return tuple((name, _seal(key, self._name(user, number, name), value)) for name, value in variables)

    def _find_keys(self) -> list[bytes]:
        """Return the keys of the home; none when it has no file.

        Raises:
            StoreError: the file is damaged.
        """
        keys = self._read_keys()[0]
        path = self.file
        if not keys and read_private_file(path, _MOST_READ) is not None:
            keys = self._read_keys()[0]  # another thread may have made the file in between
            if not keys:
                size = path.stat().st_size
                raise StoreError(
                    f"{path} is damaged: it has {size} bytes, and is not a file of keys of {_KEY} bytes",
                    "restore that file from a backup; or remove it: experiments that wait with variables then fail",
                )
        return keys

    def _list_opening_keys(self) -> list[bytes]:
        """Return the keys that open values, those of a former file last."""
        return [*self._read_keys()[0], *self._read_former_keys()]

    def _read_former_keys(self) -> list[bytes]:
        return [] if self.former is None else VariableSeals(self.former, self.server)._read_keys()[0]

    def _read_keys(self) -> tuple[list[bytes], bool]:
        """Return the keys, none when there is no file or a damaged one; and whether this version has written them."""
        content = read_private_file(self.file, _MOST_READ) or b""
        is_current = content.startswith(_MARK)
        keys = content.removeprefix(_MARK)
        if len(keys) % _KEY or (len(keys) != _KEY and not is_current):
            return [], is_current
        return [keys[at : at + _KEY] for at in range(0, len(keys), _KEY)], is_current

    def _make_key(self, mark: bytes = _MARK) -> bytes:
        """Write a new key, unless another thread does at this moment; return the one that the home has."""
        part = self.file.with_name(f"{self.file.name}.{secrets.token_hex(4)}")
        try:
            _write_file(part, mark + secrets.token_bytes(_KEY))
            with suppress(FileExistsError):
                os.link(part, self.file)
            flush_folder(self.file.parent)
            keys = self._read_keys()[0]
        except OSError as error:
            raise _explain_failure(self.file, error) from error
        finally:
            part.unlink(missing_ok=True)
        if not keys:
            raise StoreError(f"{self.file} is empty or gone", "remove it, and run the command again")
        return keys[0]

    def _write_keys(self, keys: list[bytes]) -> None:
        """Replace the file of the keys."""
        part = self.file.with_name(f"{self.file.name}.{secrets.token_hex(4)}")
        try:
            _write_file(part, _MARK + b"".join(keys))
            part.replace(self.file)
            flush_folder(self.file.parent)
        except OSError as error:
            raise _explain_failure(self.file, error) from error
        finally:
            part.unlink(missing_ok=True)


def make_seals(settings: Settings, server: str) -> VariableSeals:
    """Return what seals and opens the values of a server with these settings."""
    return VariableSeals(settings.key_file, server, settings.former_key_file)


def _seal(key: bytes, place: bytes, value: str) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 9 MiB that most servers do without

    nonce = secrets.token_bytes(_NONCE)
    hidden = AESGCM(key).encrypt(nonce, value.encode("utf-8", "surrogateescape"), place)
    return _PREFIX + base64.b64encode(nonce + hidden).decode("ascii")


def _open(keys: list[bytes], place: bytes, value: str, file: Path) -> str:
    opened = _try_keys(keys, place, value.removeprefix(_PREFIX)) if value.startswith(_PREFIX) else None
    if opened is None:
        name = place.rpartition(b"\0")[2].decode("utf-8", "replace")
        raise EngineError(
            f"the value of {name} cannot be read: it was not sealed for this experiment, with the key in {file}",
            "restore that file from a backup, or give the value again and run `riseml train`",
            permanent=True,
        )
    return opened


def _open_earlier(keys: list[bytes], place: bytes, value: str, file: Path) -> str:
    """Return a value that any version has stored."""
    if value.startswith(_PREFIX):
        return _open(keys, place, value, file)
    if not value.startswith(_EARLIER_PREFIX):
        return value
    opened = _try_keys(keys, place.rpartition(b"\0")[2], value.removeprefix(_EARLIER_PREFIX))
    return value if opened is None else opened  # with another key: it opens for no experiment


def _try_keys(keys: list[bytes], place: bytes, text: str) -> str | None:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    for key in keys:
        with suppress(ValueError, InvalidTag):
            data = base64.b64decode(text, validate=True)
            return AESGCM(key).decrypt(data[:_NONCE], data[_NONCE:], place).decode("utf-8", "surrogateescape")
    return None


def _write_file(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _explain_failure(file: Path, error: OSError) -> StoreError:
    return StoreError(f"{file} cannot be written: {error.strerror}", advise_on_write(error))
