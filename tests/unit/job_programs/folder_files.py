"""Files that tests write and read below a folder, and the errors that they expect."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from riseml.job_programs.folder_contents import FileUpload, PartWriter, read_pieces
from riseml.job_programs.folder_paths import FileErrorKind, FilesError

UPLOAD = "0123456789abcdef"
BIG = bytes(range(256)) * 20_000


def put(root: int, path: str, content: bytes, offset: int = 0, upload: str = UPLOAD) -> None:
    writer = PartWriter(root, FileUpload(path, upload, len(content), offset, 7 * 10**9))
    try:
        writer.write(content[offset:])
        writer.write(hashlib.sha256(content).digest())
        writer.finish()
    finally:
        writer.close()


def get(root: int, path: str) -> bytes:
    _, *pieces, proof = read_pieces(root, path, 0, None)
    assert proof == b"0" + hashlib.sha256(b"".join(pieces)).digest()
    return b"".join(pieces)


@contextmanager
def fails(trouble: FileErrorKind) -> Iterator[None]:
    with pytest.raises(FilesError) as caught:
        yield
    assert caught.value.trouble is trouble
