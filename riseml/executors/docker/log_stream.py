"""The body of an engine's log, from the request to the log frames."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import docker
import urllib3

from riseml.executors.logs.frames_after import FramesAfter, find_start, holds_end
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.model import Frame, LogCursor

_FRAME_HEADER = struct.Struct(">BxxxI")  # the stream, the size of what follows
_JOB_STREAMS = (1, 2)  # stdout and stderr
_ENGINE_STREAM = 3
_LONGEST_CHUNK_SIZE = 16  # hexadecimal digits
_READ_AT_ONCE = 65536  # bytes
_TAIL_FRAMES = 20  # frames that show whether the store holds the last one
_PATIENCE = 60  # seconds between two pieces of a log that is not followed


def read_log_frames(api: docker.APIClient, name: str, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
    """Yield the frames of a container's log after a cursor.

    Raises:
        APIError: the engine refused.
        ProtocolError: the connection broke, or the answer is not a log.
    """
    if (
        not follow and cursor.positions and not cursor.lags
    ):  # the engine would send the last second again, which may be 100,000 lines
        tail = itertools.chain.from_iterable(_read_frames(api, name, tail=str(_TAIL_FRAMES)))
        if holds_end(cursor, list(tail), _TAIL_FRAMES):
            return
    after = FramesAfter(cursor)
    for sent in _read_frames(api, name, follow=follow, since=format_since(cursor)):
        frames = after.keep_new(sent)
        if frames:
            yield frames


def read_missed_frames(api: docker.APIClient, name: str, count: int, last: Frame | None) -> Iterator[list[Frame]]:
    """Yield the frames of a container that has ended which a reader who followed its log has not got.

    An engine without a free inotify instance (fs.inotify.max_user_instances) looks for new lines now and then, and may
    end a followed log before its last ones: Engine 20.10 does so with each container that ends within a moment.

    Args:
        api: the engine.
        name: name of the container.
        count: how many frames the reader has got.
        last: the last one of them; None: it has got none.

    Raises:
        APIError: the engine refused.
        ProtocolError: the connection broke, or the answer is not a log.
    """
    tail = list(itertools.chain.from_iterable(_read_frames(api, name, tail="1")))
    if not tail or tail[-1] == last:
        return
    for frames in _read_frames(api, name):
        missed = frames[count:]
        count = max(0, count - len(frames))
        if missed:
            yield missed


def read_body(raw: urllib3.HTTPResponse) -> Iterator[bytes]:
    """Yield a body in pieces of the size in which they arrive.

    urllib3 gives each log frame alone, because the engine sends it as a separate HTTP chunk; that takes longer than
    all other work on the log. So this function reads the file of the connection directly, through attributes that are
    not public.

    Raises:
        ProtocolError: the connection broke before the end of the body, or the body is not chunked correctly.
    """
    file = getattr(getattr(raw, "_fp", None), "fp", None)
    if not raw.chunked or file is None:
        yield from raw.stream(_READ_AT_ONCE, decode_content=False)
        return
    chunks = ChunkReader()
    while not chunks.complete:
        piece = file.read1(_READ_AT_ONCE)
        if not piece:
            raise urllib3.exceptions.ProtocolError("the engine's log was cut")
        try:
            content = chunks.feed(piece)
        except ValueError as error:
            raise urllib3.exceptions.ProtocolError(f"the engine's log is not readable: {error}") from error
        if content:
            yield content


def format_since(cursor: LogCursor) -> str | None:
    """Return the engine's `since` of a cursor, seconds with nine digits; None: from the start of the log."""
    start = find_start(cursor, _JOB_STREAMS)
    if start is None:
        return None
    seconds, nanoseconds = divmod(start, 10**9)
    return f"{seconds}.{nanoseconds:09d}"


class ChunkReader:
    """Splits a body into its HTTP chunks, many at once; pieces may be cut anywhere. The engine sends every frame as a
    separate chunk, and no extensions and no trailers.
    """

    def __init__(self) -> None:
        self.complete = False  # the last chunk has arrived; without it the body was cut
        self._remainder = b""

    def feed(self, data: bytes) -> bytes:
        """Return the content of the chunks that are complete with `data`.

        Raises:
            ValueError: the body is not chunked.
        """
        buffer = self._remainder + data if self._remainder else data
        pieces: list[bytes] = []
        position = 0
        end = len(buffer)
        while not self.complete:
            line = buffer.find(b"\r\n", position, position + _LONGEST_CHUNK_SIZE)
            if line < 0:
                if end - position >= _LONGEST_CHUNK_SIZE:
                    raise ValueError("a chunk has no size")
                break
            size = int(buffer[position:line], 16)
            stop = line + 2 + size
            if stop + 2 > end:
                break
            pieces.append(buffer[line + 2 : stop])
            position = stop + 2
            self.complete = size == 0
        self._remainder = buffer[position:]
        return b"".join(pieces)


class FrameReader:
    """Splits a log stream into frames; pieces may be cut anywhere.

    Each frame has a header of eight bytes (Docker Engine API) and starts with a timestamp. A line longer than 16 KiB
    arrives in several frames with the same timestamp; only its last frame ends with a newline.
    """

    def __init__(self) -> None:
        self._remainder = b""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete with `data`."""
        buffer = self._remainder + data if self._remainder else data
        frames: list[Frame] = []
        position = 0
        end = len(buffer)
        while position + _FRAME_HEADER.size <= end:
            stream, size = _FRAME_HEADER.unpack_from(buffer, position)
            start = position + _FRAME_HEADER.size
            stop = start + size
            if stop > end:
                break
            position = stop
            blank = buffer.find(b" ", start, stop)
            if stream == _ENGINE_STREAM or blank < 0:
                frames.append(Frame("", stream, buffer[start:stop]))
            else:
                frames.append(Frame(buffer[start:blank].decode("ascii", "replace"), stream, buffer[blank + 1 : stop]))
        self._remainder = buffer[position:]
        return frames


def _read_frames(
    api: docker.APIClient, name: str, *, follow: bool = False, **choice: str | None
) -> Iterator[list[Frame]]:
    """Yield frames of a log. The SDK's own call drops the number of the stream and cannot start at a nanosecond.

    Args:
        choice: the parameters of the API that choose frames, `since` or `tail`; None: the request lacks it.
    """
    params = {"stdout": "1", "stderr": "1", "timestamps": "1", "follow": "1" if follow else "0", **choice}
    url = f"{api.base_url}/v{api.api_version}/containers/{name}/logs"
    reader = FrameReader()
    with api.get(url, params=params, stream=True, timeout=(api.timeout, None if follow else _PATIENCE)) as answer:
        raise_for_refusal(answer)
        for piece in read_body(answer.raw):
            yield reader.feed(piece)
