"""The server's side of a stream to a `command_runner`, beside the server or on a node of a cluster."""

from __future__ import annotations

from typing import Any

from riseml.base.stream_messages import (
    ChannelData,
    ChannelEnd,
    CommandRequest,
    LengthPrefixed,
    StreamMessage,
    WindowSize,
    prefix_length,
)
from riseml.executors.base import NotThere


class RunnerCodec:
    """Messages after their lengths."""

    def __init__(self) -> None:
        self._messages = LengthPrefixed()

    def decode(self, data: bytes) -> list[StreamMessage]:
        return self._messages.feed(data)

    def encode(self, message: StreamMessage) -> bytes | None:
        return prefix_length(message) if isinstance(message, ChannelData | ChannelEnd | WindowSize) else b""


class RunnerControl:
    """The control of a runner, which ends with its stream. Window size and exit code travel in the stream."""

    def resize(self, size: WindowSize) -> None:
        """Do nothing: the codec sends it."""

    def find_exit_code(self) -> int | None:
        raise NotThere("the runner of the command was killed")

    def end(self) -> None:
        """Do nothing: the runner ends everything when its stream has ended."""


def make_runner_order(request: CommandRequest) -> dict[str, Any]:
    """Return the request for a runner of a command, the input of `command_runner.complete_order`."""
    size = request.terminal
    rows, columns = (size.rows or 24, size.columns or 80) if size is not None else (0, 0)
    return {"command": list(request.command), "term": request.term, "rows": rows, "columns": columns}
