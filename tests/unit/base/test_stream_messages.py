"""The messages of a stream into a job: every one survives its bytes, and foreign bytes are refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.stream_messages import (
    LONGEST_MESSAGE,
    Channel,
    ChannelData,
    ChannelEnd,
    CommandExit,
    CommandRequest,
    FlowWindow,
    LengthPrefixed,
    StreamFailure,
    StreamMessage,
    StreamReady,
    WindowSize,
    WindowUpdate,
    decode_message,
    encode_message,
    prefix_length,
)

CHANNELS = st.sampled_from(Channel)
SIZES = st.builds(WindowSize, st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1))
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
TERMS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=64)
MESSAGES: st.SearchStrategy[StreamMessage] = st.one_of(
    st.builds(ChannelData, CHANNELS, st.binary()),
    st.builds(ChannelEnd, CHANNELS),
    st.builds(WindowUpdate, st.integers(0, 2**32 - 1)),
    SIZES,
    st.builds(CommandExit, st.integers(-(2**31), 2**31 - 1)),
    st.builds(StreamFailure, WORDS, WORDS, st.none() | WORDS, st.integers(0, 255)),
    st.builds(CommandRequest, st.lists(WORDS).map(tuple), st.none() | SIZES, TERMS),
    st.just(StreamReady()),
)


@given(MESSAGES)
def test_a_message_survives_its_bytes(message: StreamMessage) -> None:
    assert decode_message(encode_message(message)) == message


@given(st.lists(MESSAGES), st.lists(st.integers(0, 4000)))
def test_messages_after_their_lengths_survive_every_cut(messages: list[StreamMessage], cuts: list[int]) -> None:
    data = b"".join(map(prefix_length, messages))
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    reader = LengthPrefixed()
    assert [one for start, end in pairwise(places) for one in reader.feed(data[start:end])] == messages


@given(st.binary())
def test_foreign_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        message = decode_message(data)
    except ValueError:
        return
    assert decode_message(encode_message(message)) == message


@given(st.sampled_from([7, 8]), st.recursive(st.none() | st.text() | st.integers(), st.lists) | st.just({}))
def test_foreign_fields_are_refused(kind: int, value: object) -> None:
    import json

    with pytest.raises(ValueError):
        decode_message(bytes([kind]) + json.dumps(value).encode())


def test_a_long_message_is_refused() -> None:
    with pytest.raises(ValueError):
        decode_message(bytes(LONGEST_MESSAGE + 1))
    with pytest.raises(ValueError):
        LengthPrefixed().feed(b"\xff\xff\xff\xff")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 100))))
def test_a_window_never_holds_more_than_its_size(steps: list[tuple[bool, int]]) -> None:
    window, sent = FlowWindow(100), 0
    for takes, amount in steps:
        try:
            if takes:
                window.take(amount)
                sent += amount
            else:
                window.grant(amount)
                sent -= amount
        except ValueError:
            continue
        assert 0 <= sent <= 100
        assert window.left == 100 - sent
