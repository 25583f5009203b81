"""The body of an engine's log, from the request to the log frames."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import docker
import urllib3

from riseml.executors.docker.log_frames import ChunkReader, FrameReader, format_since
from riseml.executors.logs.frames_after import FramesAfter, holds_end
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.model import Frame, LogCursor

_CHUNK = 65536  # bytes
_TAIL = 20  # frames that show whether the store holds the last one
_PATIENCE = 60  # seconds between two pieces of a log that is not followed


def read_log_frames(api: docker.APIClient, name: str, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
    """Yield the frames of a container's log after a cursor.

    Raises:
        APIError: the engine refused.
        ProtocolError: the connection broke, or the answer is not a log.
    """
    if not follow and cursor.positions:  # the engine would send the last second again, which may be 100,000 lines
        tail = itertools.chain.from_iterable(_read_frames(api, name, tail=str(_TAIL)))
        if holds_end(cursor, list(tail), _TAIL):
            return
    after = FramesAfter(cursor)
    for sent in _read_frames(api, name, follow=follow, since=format_since(cursor)):
        frames = after.keep_new(sent)
        if frames:
            yield frames


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
        yield from raw.stream(_CHUNK, decode_content=False)
        return
    chunks = ChunkReader()
    while not chunks.complete:
        piece = file.read1(_CHUNK)
        if not piece:
            raise urllib3.exceptions.ProtocolError("the engine's log was cut")
        try:
            content = chunks.feed(piece)
        except ValueError as error:
            raise urllib3.exceptions.ProtocolError(f"the engine's log is not readable: {error}") from error
        if content:
            yield content
