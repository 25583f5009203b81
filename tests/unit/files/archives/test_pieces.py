"""Pieces: any cut of the stream gives the same contents, and nothing else is taken."""

from __future__ import annotations

import hashlib
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.errors import UsageError
from riseml.files.archives.pieces import PIECE, RECORD, PieceReader, RecordReader, write_pieces
from tests.support.archives import ContentCollector

SIZES = st.sampled_from([0, PIECE, PIECE * 2 + 7])


@pytest.mark.parametrize("kind", ["plain", "compressed"])
@given(contents=st.lists(st.binary(max_size=300), max_size=6), cut=st.integers(1, 200), big=SIZES)
@settings(max_examples=25, deadline=None)
def test_contents_arrive_however_the_stream_is_cut(kind: str, contents: list[bytes], cut: int, big: int) -> None:
    contents = [*contents, b"ab" * (big // 2)]
    records = b"".join(RECORD.pack(len(content)) + content for content in contents)
    stream = b"".join(write_pieces([records[:cut], records[cut:]], compress=kind == "compressed"))
    found: dict[str, bytes] = {}
    pieces, reader = PieceReader(), RecordReader(ContentCollector(found), 1 << 30)
    step = cut * 50
    for at in range(0, len(stream), step):
        for piece in pieces.feed(stream[at : at + step]):
            reader.feed(piece)
    pieces.check_end()
    assert found == {hashlib.sha256(content).hexdigest(): content for content in contents}
    if kind == "compressed" and big:
        assert len(stream) < len(records) / 10


ZEROS = zlib.compress(bytes(100), 1)
BAD = {
    "another kind": struct.pack("<BII", 2, 3, 3) + b"abc",
    "too large": struct.pack("<BII", 0, PIECE + 1, PIECE + 1),
    "plain, and more than it says": struct.pack("<BII", 0, 1, 3) + b"abc",
    "plain, and less than it says": struct.pack("<BII", 0, 3, 1) + b"a",
    "a bomb": struct.pack("<BII", 1, 10, len(ZEROS)) + ZEROS,
    "less than it says": struct.pack("<BII", 1, 101, len(ZEROS)) + ZEROS,
    "not compressed": struct.pack("<BII", 1, 5, 5) + b"abcde",
    "something behind": struct.pack("<BII", 1, 100, len(ZEROS) - 2) + ZEROS[:-2],
}


@pytest.mark.parametrize("what", BAD)
def test_a_malformed_piece_is_refused(what: str) -> None:
    with pytest.raises(UsageError):
        list(PieceReader().feed(BAD[what]))


def test_a_content_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError):
        RecordReader(ContentCollector({}), 10).feed(RECORD.pack(11))


def test_a_stream_that_is_cut_off_is_noticed() -> None:
    reader = PieceReader()
    list(reader.feed(b"".join(write_pieces([b"abc"], compress=False))[:-1]))
    with pytest.raises(UsageError):
        reader.check_end()
