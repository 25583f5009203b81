"""The cursor of the merged stream as text."""

from __future__ import annotations

import pytest

from riseml.base.errors import UsageError
from riseml.server.api.merged_log.stream_cursor import StreamPosition, parse_stream_cursor
from riseml.store.logs.read_position import ReadPosition


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        ("0.0", (StreamPosition(),)),
        ("7.120", (StreamPosition(7, 120),)),
        ("7.120.30,8.0", (StreamPosition(7, 120, 30), StreamPosition(8))),
    ],
)
def test_positions_are_written_and_read(text: str, positions: tuple[StreamPosition, ...]) -> None:
    assert parse_stream_cursor(text, len(positions)) == positions
    assert ",".join(map(str, positions)) == text


def test_an_empty_cursor_begins_at_the_beginning() -> None:
    assert parse_stream_cursor("", 2) == (StreamPosition(), StreamPosition())


def test_experiments_that_a_search_has_made_since_begin_at_the_beginning() -> None:
    assert parse_stream_cursor("7.120", 2, grows=True) == (StreamPosition(7, 120), StreamPosition())
    with pytest.raises(UsageError, match="is not a cursor of this log"):
        parse_stream_cursor("7.120", 2)
    with pytest.raises(UsageError, match="is not a cursor of this log"):
        parse_stream_cursor("7.120,8.0", 1, grows=True)


@pytest.mark.parametrize("text", ["7", "7.x", "-1.0", "7.10.20", f"{2**31}.0", f"0.{2**43}", "1.1,", "0.0\n"])
def test_other_texts_are_no_cursors(text: str) -> None:
    with pytest.raises(UsageError, match="is not a cursor of this log"):
        parse_stream_cursor(text, 1)


def test_a_position_in_a_log_stays_with_its_event() -> None:
    position = StreamPosition(7).with_log_position(ReadPosition(120, 30))
    assert position == StreamPosition(7, 120, 30)
    assert position.log_position == ReadPosition(120, 30)
