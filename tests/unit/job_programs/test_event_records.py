"""Records of event files are read as TensorBoard reads them, and bytes that are none harm nothing."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.histogram import summary_v2 as histogram
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.util.tensor_util import make_ndarray, make_tensor_proto

from riseml.job_programs.event_records import (
    MOST_DATA,
    MOST_FIELDS,
    Damaged,
    mask_crc,
    read_length,
    read_scalars,
    read_wall_time,
    shorten_float,
    split_records,
)
from tests.support.event_files import make_event, make_record

TAGS = st.sampled_from(["loss", "acc/top 1", "损失", "a"])
FLOATS = st.floats(width=32)
NUMBERS = [
    "float32",
    "float64",
    "int32",
    "uint8",
    "int16",
    "int8",
    "int64",
    "bool",
    "uint16",
    "float16",
]


def make_simple(tag: str, number: float) -> Summary:
    return Summary(value=[Summary.Value(tag=tag, simple_value=number)])


def make_tensor(tag: str, number: float, kind: str, shape: tuple[int, ...], plugin: str) -> Summary:
    with np.errstate(all="ignore"):
        array = np.full(shape, number if math.isfinite(number) else 1).astype(kind)
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin))
    return Summary(value=[Summary.Value(tag=tag, tensor=make_tensor_proto(array), metadata=metadata)])


SUMMARIES = st.one_of(
    st.builds(make_simple, TAGS, FLOATS),
    st.builds(scalar_pb, TAGS, FLOATS),
    st.builds(
        make_tensor,
        TAGS,
        st.floats(-100, 100),
        st.sampled_from(NUMBERS),
        st.sampled_from([(), (), (1,), (2,), (1, 1)]),
        st.sampled_from(["scalars", "scalars", "text", ""]),
    ),
    st.builds(text_pb, TAGS, st.text()),
    st.builds(lambda tag: histogram.histogram_pb(tag, np.arange(5.0)), TAGS),
)
EVENTS = st.builds(
    lambda step, at, summary: Event(step=step, wall_time=at, summary=summary),
    st.integers(-(10**14), 10**14),
    st.floats(0, 1e10),
    SUMMARIES,
)


def read_all(content: bytes) -> list[tuple[str, int, float, float]]:
    known: dict[tuple[str, str], bool] = {}
    datas, _, _ = split_records(content)
    return [
        (scalar.tag, scalar.step, scalar.at, float(np.float32(scalar.value)))
        for data in datas
        for scalar in read_scalars(data, "", known)
    ]


def read_by_tensorboard(path: Path) -> list[tuple[str, int, float, float]]:
    """Return what the plugin of scalars shows: the first metadata of a tag say whether it is one."""
    plugins: dict[str, str] = {}
    found = []
    for event in EventFileLoader(str(path)).Load():
        for value in event.summary.value:
            plugin = plugins.setdefault(value.tag, plugin_of(value))
            array = make_ndarray(value.tensor)
            if plugin == "scalars" and array.size == 1 and array.dtype.kind not in "OSU":
                found.append((value.tag, event.step, event.wall_time, float(np.float32(array.item()))))
    return found


def plugin_of(value: Summary.Value) -> str:
    return str(value.metadata.plugin_data.plugin_name)


@settings(max_examples=200)
@given(events=st.lists(EVENTS, max_size=12), cut=st.integers(0, 60))
def test_scalars_are_those_of_tensorboard(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], cut: int
) -> None:
    """Also of a file whose last record is not complete yet."""
    path = tmp_path_factory.mktemp("events") / "events.out.tfevents.1.host"
    content = b"".join(make_record(event.SerializeToString()) for event in events)
    path.write_bytes(content[: len(content) - cut] if cut else content)
    # A writer of simple values and one of tensors of another plugin never share a tag.
    values = [value for event in events for value in event.summary.value]
    kinds = {(one.tag, one.HasField("simple_value") or plugin_of(one) == "scalars") for one in values}
    if len({tag for tag, _ in kinds}) < len(kinds):
        return
    assert repr(read_all(path.read_bytes())) == repr(read_by_tensorboard(path))


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("packed", [True, False])
def test_numbers_of_each_type(kind: str, *, packed: bool) -> None:
    """A tensor has its number as bytes, or in a field of its type."""
    tensor = make_tensor_proto(np.array(1, kind))
    if packed:
        tensor.ClearField("tensor_content")
        array = np.array(1, kind)
        for field in (
            "float_val",
            "double_val",
            "int_val",
            "int64_val",
            "bool_val",
            "half_val",
        ):
            tensor.ClearField(field)
        tensor.tensor_content = array.tobytes()
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    summary = Summary(value=[Summary.Value(tag="x", tensor=tensor, metadata=metadata)])
    (scalar,) = read_scalars(Event(step=1, summary=summary).SerializeToString(), "", {})
    assert scalar.value == 1


def test_a_later_tensor_may_lack_the_metadata() -> None:
    known: dict[tuple[str, str], bool] = {}
    first = scalar_pb("x", 0.5)
    later = scalar_pb("x", 0.25)
    later.value[0].ClearField("metadata")
    datas = [Event(step=step, summary=summary).SerializeToString() for step, summary in enumerate((first, later))]
    assert [scalar.value for data in datas for scalar in read_scalars(data, "train", known)] == [0.5, 0.25]
    assert read_scalars(datas[1], "eval", known) == []


@settings(max_examples=300)
@given(content=st.binary(max_size=200), flip=st.integers(0, 10**6))
def test_no_bytes_do_harm(content: bytes, flip: int) -> None:
    """Neither any bytes, nor a record with one bit changed, raise anything but `Damaged`."""
    record = bytearray(make_event(7, loss=0.5))
    record[flip % len(record)] ^= 1 << flip % 8
    for data in (content, bytes(record)):
        try:
            datas, taken, _ = split_records(data)
        except Damaged:
            continue
        assert taken <= len(data)
        assert data is not record or datas == []
    for data in (content, bytes(record[12:-4])):
        for read in (read_wall_time, lambda event: read_scalars(event, "", {})):
            call: Callable[[bytes], object] = read
            try:
                call(data)
            except Damaged:
                continue


def test_a_hostile_record_is_bounded() -> None:
    """A length of any size costs nothing, and an event has so many fields at most."""
    head = struct.pack("<Q", 2**60)
    content = head + struct.pack("<I", mask_crc(head))
    assert read_length(content) == 2**60
    assert split_records(content + b"x" * 100) == ([], 0, 2**60 + 16)
    with pytest.raises(Damaged):
        read_scalars(b"\x10\x01" * (MOST_FIELDS + 1), "", {})
    small = Summary.Value(tag="a", simple_value=1).SerializeToString()
    summary = b"".join(b"\x0a" + bytes([len(small)]) + small for _ in range(MOST_FIELDS))
    event = b"".join(b"\x2a" + _varint(len(summary)) + summary for _ in range(4))
    assert len(event) < MOST_DATA
    assert len(read_scalars(event, "", {})) == MOST_FIELDS


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


@given(FLOATS)
def test_a_short_number_is_the_same_float(number: float) -> None:
    short = shorten_float(number)
    assert math.isnan(number) or struct.pack("<f", short) == struct.pack("<f", number)


def test_a_short_number_is_what_people_write() -> None:
    assert shorten_float(struct.unpack("<f", struct.pack("<f", 0.1))[0]) == 0.1
