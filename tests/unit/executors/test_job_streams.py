"""A stream whose bytes are its content."""

from __future__ import annotations

import pytest

from riseml.base.stream_messages import Channel, ChannelData, ChannelEnd, StreamMessage, WindowSize
from riseml.executors.job_streams import RawCodec


@pytest.mark.parametrize(
    ("message", "of_a_port", "of_a_terminal"),
    [
        (ChannelData(Channel.INPUT, b"ls\n"), b"ls\n", b"ls\n"),
        (ChannelEnd(Channel.INPUT), None, b"\x04"),
        (WindowSize(24, 80), b"", b""),
        (ChannelData(Channel.OUTPUT, b"not for the job"), b"", b""),
    ],
)
def test_a_message_becomes_bytes_or_the_end_of_the_sending_side(
    message: StreamMessage, of_a_port: bytes | None, of_a_terminal: bytes
) -> None:
    assert RawCodec().encode(message) == of_a_port
    assert RawCodec(b"\x04").encode(message) == of_a_terminal


def test_every_byte_of_the_job_is_output() -> None:
    assert RawCodec().decode(b"\x00\xff") == [ChannelData(Channel.OUTPUT, b"\x00\xff")]
