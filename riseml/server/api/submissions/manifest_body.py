"""The body of a request with the list of a project's files."""

from __future__ import annotations

from collections.abc import AsyncIterator

from riseml.base.errors import TooLarge
from riseml.files.archives.manifest import LONGEST_MANIFEST
from riseml.files.archives.pieces import PieceReader


async def read_manifest_body(chunks: AsyncIterator[bytes]) -> bytes:
    """Return the manifest that a client sends in pieces (see `files.archives.pieces`).

    Raises:
        UsageError: the pieces are malformed, or cut off.
        TooLarge: the manifest has more bytes than the most files need.
    """
    reader = PieceReader()
    pieces = list[bytes | memoryview]()
    size = 0
    async for chunk in chunks:
        for piece in reader.feed(chunk):
            pieces.append(piece)
            size += len(piece)
            if size > LONGEST_MANIFEST:
                raise TooLarge(
                    "the list of the project's files is too long", "name what is not needed in .risemlignore"
                )
    reader.check_end()
    return b"".join(pieces)
