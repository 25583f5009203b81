"""The server's side of a stream to a runner of commands."""

from __future__ import annotations

import pytest

from riseml.base.stream_messages import (
    Channel,
    ChannelData,
    ChannelEnd,
    CommandExit,
    CommandRequest,
    StreamMessage,
    WindowSize,
    WindowUpdate,
    prefix_length,
)
from riseml.executors.base import NotThere
from riseml.executors.supervision.runner_streams import RunnerCodec, RunnerControl, make_runner_order


@pytest.mark.parametrize(
    ("terminal", "rows", "columns"),
    [(None, 0, 0), (WindowSize(33, 101), 33, 101), (WindowSize(0, 0), 24, 80)],
    ids=["without a terminal", "a terminal", "a terminal that does not know its size"],
)
def test_an_order_has_the_size_of_the_terminal(terminal: WindowSize | None, rows: int, columns: int) -> None:
    order = make_runner_order(CommandRequest(("ls", "-l"), terminal, "xterm"))
    assert order == {"command": ["ls", "-l"], "term": "xterm", "rows": rows, "columns": columns}


@pytest.mark.parametrize("message", [ChannelData(Channel.INPUT, b"x"), ChannelEnd(Channel.INPUT), WindowSize(1, 2)])
def test_a_runner_gets_input_and_sizes(message: StreamMessage) -> None:
    assert RunnerCodec().encode(message) == prefix_length(message)


def test_a_runner_gets_no_grants() -> None:
    assert RunnerCodec().encode(WindowUpdate(1000)) == b""


def test_the_output_of_a_runner_is_read_in_whatever_pieces_it_comes() -> None:
    messages: list[StreamMessage] = [ChannelData(Channel.OUTPUT, b"out"), CommandExit(3)]
    data = b"".join(map(prefix_length, messages))
    codec = RunnerCodec()
    assert [message for byte in data for message in codec.decode(bytes([byte]))] == messages


def test_a_stream_that_ends_without_an_exit_code_was_killed() -> None:
    with pytest.raises(NotThere, match="was killed"):
        RunnerControl().find_exit_code()
