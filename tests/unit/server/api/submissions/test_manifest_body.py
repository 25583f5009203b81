"""The list of a project's files, in pieces of any size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from riseml.base.errors import TooLarge, UsageError
from riseml.files.archives.pieces import write_pieces
from riseml.server.api.submissions import manifest_body
from riseml.server.api.submissions.manifest_body import read_manifest_body

MANIFEST = b"a manifest" * 1000
BODY = b"".join(write_pieces([MANIFEST], compress=True))


def read(body: bytes, size: int) -> bytes:
    """Return what is read of a body that arrives in chunks of some bytes."""

    async def send() -> AsyncIterator[bytes]:
        for at in range(0, len(body), size):
            yield body[at : at + size]

    return asyncio.run(read_manifest_body(send()))


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_manifest_is_whole_however_it_arrives(size: int) -> None:
    assert read(BODY, size) == MANIFEST


def test_a_body_that_is_cut_off_is_refused() -> None:
    with pytest.raises(UsageError):
        read(BODY[:-1], 7)


def test_a_manifest_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_body, "LONGEST_MANIFEST", len(MANIFEST) - 1)
    with pytest.raises(TooLarge, match="the list of the project's files is too long"):
        read(BODY, 7)
