"""A folder of an object store to which the server writes, through obstore: S3, Google Cloud Storage, Azure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import md5

import obstore
from obstore.exceptions import BaseError, InvalidPathError

from riseml.base.errors import EngineError
from riseml.data_stores.object_folder import connect_store
from riseml.data_stores.store_errors import Purpose, explain_store_error
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import DataUrl

_WHOLE = 8 << 20  # bytes; a larger object is written in parts
_MOST_PARTS = 9_000  # parts of one object; S3 takes 10,000
_AT_ONCE = 4  # parts of one object
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


class ObjectTarget:
    """What is below an address; an implementation of `SaveTarget`."""

    def __init__(self, url: DataUrl, store: Store) -> None:
        self._url = url
        self._store = store
        self._objects = connect_store(url, store)

    def read(self, key: str, start: int, stop: int) -> bytes | None:
        """Return a range of an object."""
        try:
            return obstore.get(self._objects, self._name(key), options={"range": (start, stop)}).bytes().to_bytes()
        except FileNotFoundError:
            return None
        except (BaseError, ValueError) as error:
            raise self._explain(error) from None

    def write(self, key: str, size: int, pieces: Iterator[bytes]) -> None:
        """Write an object; the parts of a large one become an object when all of them are there."""
        failed: list[BaseException] = []

        def watch() -> Iterator[bytes]:
            try:
                yield from pieces
            except BaseException as error:
                failed.append(error)
                raise

        try:
            if size <= _WHOLE:
                data = b"".join(watch())
                etag = obstore.put(self._objects, self._name(key), data, use_multipart=False)["e_tag"]
                self._check_content(key, data, etag or "")
                return
            part = max(_WHOLE, -(-size // _MOST_PARTS))
            obstore.put(self._objects, self._name(key), watch(), chunk_size=part, max_concurrency=_AT_ONCE)
            self._check_size(key, size)
        except (BaseError, ValueError, OSError) as error:
            if failed:
                raise failed[0] from None
            raise self._explain(error) from None

    def copy(self, key: str, target: str) -> None:
        """Write an object that has the content of another one."""
        try:
            obstore.copy(self._objects, self._name(key), self._name(target))
        except (BaseError, ValueError, OSError) as error:
            raise self._explain(error) from None

    def list_keys(self, folder: str) -> list[str]:
        """Return the objects below a folder."""
        try:
            pages = list(obstore.list(self._objects, self._name(folder)))
        except (BaseError, ValueError, OSError) as error:
            raise self._explain(error) from None
        return [meta["path"].removeprefix(f"{self._url.path}/") for page in pages for meta in page]

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects."""
        for key in keys:
            try:
                obstore.delete(self._objects, self._name(key))
            except FileNotFoundError:
                continue
            except (BaseError, ValueError, OSError) as error:
                raise self._explain(error) from None

    def _name(self, key: str) -> str:
        return f"{self._url.path}/{key}"

    def _check_content(self, key: str, data: bytes, etag: str) -> None:
        """Refuse an object whose ETag is the MD5 of other content."""
        match = _MD5.fullmatch(etag) if self._store.etag_is_md5 else None
        if match is not None and match[1] != md5(data, usedforsecurity=False).hexdigest():
            raise EngineError(
                f"{self._url}: what the store has of {key!a} is not what was sent, as its ETag says",
                "if the store encrypts objects with keys of its own, write `etag_is_md5: false` in stores.yml",
                permanent=True,
            )

    def _check_size(self, key: str, size: int) -> None:
        stored = obstore.head(self._objects, self._name(key))["size"]
        if stored != size:
            raise EngineError(f"{self._url}: the store has {stored:,} of {size:,} bytes of {key!a}")

    def _explain(self, error: Exception) -> EngineError:
        if isinstance(error, (InvalidPathError, ValueError)):
            return EngineError(f"{self._url} has no room for a name that a file has", permanent=True)
        return explain_store_error(self._url, self._store, str(error), Purpose.SAVE)
