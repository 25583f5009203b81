"""What the stream of a command in a container carries."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.stream_messages import Channel, ChannelData, ChannelEnd, WindowSize
from riseml.executors.docker.exec_codecs import END_OF_INPUT, FramedCodec
from riseml.executors.job_streams import RawCodec

STREAMS = {1: Channel.OUTPUT, 2: Channel.ERRORS, 3: Channel.ERRORS}


@given(st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.binary())), st.lists(st.integers(0, 500)))
def test_frames_survive_every_cut(frames: list[tuple[int, bytes]], cuts: list[int]) -> None:
    data = b"".join(struct.pack(">BxxxI", stream, len(content)) + content for stream, content in frames)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    codec = FramedCodec()
    pieces = [piece for start, end in pairwise(places) for piece in codec.decode(data[start:end])]
    for channel in (Channel.OUTPUT, Channel.ERRORS):
        wanted = b"".join(content for stream, content in frames if STREAMS[stream] is channel)
        got = (piece.content for piece in pieces if isinstance(piece, ChannelData) and piece.channel is channel)
        assert b"".join(got) == wanted


def test_a_frame_of_another_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="stream 9"):
        FramedCodec().decode(struct.pack(">BxxxI", 9, 1))


def test_the_input_of_a_terminal_ends_with_control_d_and_another_with_the_connection() -> None:
    end = ChannelEnd(Channel.INPUT)
    assert RawCodec(END_OF_INPUT).encode(end) == b"\x04"
    assert FramedCodec().encode(end) is None
    for codec in (RawCodec(END_OF_INPUT), FramedCodec()):
        assert codec.encode(ChannelData(Channel.INPUT, b"ls\n")) == b"ls\n"
        assert codec.encode(WindowSize(24, 80)) == b""
