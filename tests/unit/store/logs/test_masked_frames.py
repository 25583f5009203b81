"""Secret values are not in the log of a job: in no form, however the engine cuts it; everything else is."""

from __future__ import annotations

import base64
import itertools
import json
import re
import subprocess
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from riseml.base.masks import MASK, Masker, list_escaped_forms, list_forms
from riseml.model import Frame
from riseml.store.logs.masked_frames import FrameMasker

OTHER_BYTES = st.binary(max_size=12).map(lambda data: data.replace(b"\n", b".").replace(b"*", b"+"))  # none is a mask
VALUES = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"), min_size=6, max_size=30
).filter(lambda value: value.strip() == value and len(value.encode()) >= 6)
FORMS: dict[str, Callable[[bytes], bytes]] = {
    "raw": bytes,
    "base64": base64.b64encode,
    "base64 behind a byte": lambda value: base64.b64encode(b"x" + value),
    "base64 behind two bytes": lambda value: base64.b64encode(b"xy" + value + b"z"),
    "base64url": lambda value: base64.urlsafe_b64encode(b"a" + value),
    "url": lambda value: quote(value, safe="").encode(),
    "url path": lambda value: quote(value).encode(),
    "form": lambda value: quote_plus(value).encode(),
    "url in lower case": lambda value: re.sub(b"%..", lambda found: found[0].lower(), quote(value, safe="").encode()),
    "url in mixed case": lambda value: re.sub(
        b"%(.)(.)", lambda found: b"%" + found[1].lower() + found[2].upper(), quote(value, safe="").encode()
    ),
    "JSON": lambda value: json.dumps(value.decode())[1:-1].encode(),
    "JSON in UTF-8": lambda value: json.dumps(value.decode(), ensure_ascii=False)[1:-1].encode(),
    "hex": lambda value: value.hex().encode(),
    "HEX": lambda value: value.hex().upper().encode(),
}


def _cut(data: bytes, cuts: list[int], stream: int = 1) -> list[Frame]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [Frame("t", stream, data[start:end]) for start, end in itertools.pairwise(places)]


def _run(batches: list[list[Frame]], masker: Masker) -> list[Frame]:
    frames = FrameMasker()
    passed = [frame for batch in batches for frame in frames.mask_frames(batch, masker)]
    return [*passed, *frames.flush(masker)]


@given(
    value=VALUES,
    form=st.sampled_from(sorted(FORMS)),
    before=OTHER_BYTES,
    after=OTHER_BYTES,
    cuts=st.lists(st.integers(0, 200), max_size=8),
    ends_line=st.booleans(),
    batched=st.booleans(),
)
@example(value="aaaaab", form="raw", before=b"aaaa", after=b"aaaaa", cuts=[3, 5], ends_line=False, batched=False)
@example(value="abcdefabc", form="raw", before=b"abcdef", after=b"def", cuts=[7], ends_line=True, batched=True)
def test_no_value_is_seen_and_all_other_bytes_stay(
    *, value: str, form: str, before: bytes, after: bytes, cuts: list[int], ends_line: bool, batched: bool
) -> None:
    masker = Masker([value])
    printed = before + FORMS[form](value.encode()) + after
    data = printed + (b"\n" if ends_line else b"")
    frames = _cut(data, cuts)
    batches = [frames] if batched else [[frame] for frame in frames]
    passed = _run(batches, masker)
    assert [(frame.at, frame.stream) for frame in passed] == [(frame.at, frame.stream) for frame in frames]
    whole = b"".join(frame.data for frame in passed)
    assert whole == masker.mask(data), "as the whole line would be masked"
    left = whole.replace(MASK, b"\n")
    assert not any(seen in left for seen in list_forms(value))
    assert not any(seen.lower() in left.lower() for seen in list_escaped_forms(value))
    assert MASK in whole
    rest = [piece for piece in whole.split(MASK) if piece]
    assert all(piece in data for piece in rest), "other bytes stay"


@pytest.mark.parametrize("newline", [b"", b"\n"], ids=["printf", "echo"])
@pytest.mark.parametrize("command", [["base64"], ["openssl", "base64"]], ids=" ".join)
def test_the_lines_of_a_long_value_that_a_program_encodes_are_masked(command: list[str], newline: bytes) -> None:
    value = "".join(f"<{number:03d}-key>" for number in range(20))
    encoded = subprocess.run(command, input=value.encode() + newline, capture_output=True, check=True).stdout
    assert encoded.count(b"\n") > 1
    assert Masker([value]).mask(encoded) == b"***\n" * encoded.count(b"\n")


@given(lines=st.lists(OTHER_BYTES, max_size=8), value=VALUES, cuts=st.lists(st.integers(0, 90), max_size=4))
def test_a_log_without_values_stays_as_it_is(lines: list[bytes], value: str, cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    masker = Masker([value])
    if masker.may_hold(data):
        return
    frames = [frame for line in data.splitlines(keepends=True) for frame in _cut(line, cuts)]
    assert _run([[frame] for frame in frames], masker) == frames


def test_a_line_waits_for_no_other_stream() -> None:
    masker, frames = Masker(["hf_s3cret"]), FrameMasker()
    assert frames.mask_frames([Frame("1", 1, b"token: hf_s3")], masker) == []
    assert frames.holds_frames
    error = Frame("2", 2, b"a warning\n")
    assert frames.mask_frames([error], masker) == [error]
    rest = [Frame("1", 1, b"cr"), Frame("1", 1, b"et done\n")]
    assert frames.mask_frames(rest, masker) == [
        Frame("1", 1, b"token: ***"),
        Frame("1", 1, b""),
        Frame("1", 1, b" done\n"),
    ]
    bar = Frame("3", 1, b"10 % \r")
    assert frames.mask_frames([bar], masker) == [bar]
    frames.mask_frames([Frame("4", 1, b"h")], masker)
    frames.forget()
    assert frames.flush(masker) == []


def test_each_line_of_a_value_is_masked() -> None:
    key = "-----BEGIN KEY-----\n  MIIEvQIBADAN\nshort\nAgEAAoIBAQC7\n"
    masker = Masker([key])
    printed = [b"key: MIIEvQIBADAN.\n", b"AgEAAoIBAQC7\n", b"short\n", json.dumps({"k": key}).encode() + b"\n"]
    shown = b"".join(frame.data for frame in _run([[Frame("t", 1, line) for line in printed]], masker))
    assert shown == b'key: ***.\n***\nshort\n{"k": "***"}\n'


@pytest.mark.parametrize("value", ["", "12345", "a\nb\n", "\n\n\n\n\n\n\n"])
def test_a_short_value_is_not_masked(value: str) -> None:
    assert Masker([value]).is_empty
    assert Masker([value]).mask_text("12345 a b") == "12345 a b"
