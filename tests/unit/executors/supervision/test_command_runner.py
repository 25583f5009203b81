"""The runner of commands: the messages that it writes and reads are those of the server."""

from __future__ import annotations

from riseml.base import stream_messages
from riseml.base.stream_messages import (
    Channel,
    ChannelData,
    ChannelEnd,
    CommandExit,
    StreamMessage,
    WindowSize,
    prefix_length,
)
from riseml.executors.supervision import command_runner


def test_the_formats_of_streams_are_one() -> None:
    read = command_runner.MessageReader()
    sent: list[StreamMessage] = [ChannelData(Channel.INPUT, b"in"), ChannelEnd(Channel.INPUT), WindowSize(33, 101)]
    (given, fields), (end, channel), (size, rows) = read.feed(b"".join(map(prefix_length, sent)))
    assert (given, fields) == (command_runner.INPUT, b"in")
    assert (end, channel) == (command_runner.END, bytes([command_runner.INPUT]))
    assert (size, command_runner.SIZE.unpack(rows)) == (command_runner.WINDOW_SIZE, (33, 101))
    said = [
        command_runner.write_message(command_runner.OUTPUT, b"out"),
        command_runner.write_message(command_runner.ERRORS, b"bad"),
        command_runner.write_message(command_runner.EXIT, command_runner.CODE.pack(7)),
    ]
    pieces = [ChannelData(Channel.OUTPUT, b"out"), ChannelData(Channel.ERRORS, b"bad"), CommandExit(7)]
    assert stream_messages.LengthPrefixed().feed(b"".join(said)) == pieces
    assert command_runner.LONGEST_PIECE == stream_messages.LONGEST_PIECE
    assert command_runner.LONGEST_MESSAGE == stream_messages.LONGEST_MESSAGE
