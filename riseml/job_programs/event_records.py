"""Reads records of TensorBoard's event files: a part of `event_reader`. Python 3.6 or newer, standard library only.

A record is its length (8 bytes), the masked CRC-32C of these 8 bytes (4 bytes), the data, and the masked CRC-32C of
the data (4 bytes). The data is a message `Event` of protobuf, of which this module reads the few fields with scalars:

    Event         1 wall_time (double), 2 step (int64), 3 file_version (text), 5 summary
    Summary       1 value (repeated)
    Value         1 tag (text), 2 simple_value (float), 8 tensor, 9 metadata
    metadata      1 plugin_data: 1 plugin_name (text)
    tensor        1 dtype, 2 tensor_shape, 4 tensor_content, 5 float_val, 6 double_val, 7 int_val, 10 int64_val, ...
    tensor_shape  2 dim (repeated): 1 size

TensorBoard's own reader needs protobuf, numpy and more, which an image for training may lack or have in any version; it
takes 190 ms of processor time to load, and 33 MB.
"""

import struct
from collections.abc import Iterator

MOST_DATA = 8 << 20  # bytes of a record; a larger one is passed over: it holds pictures or a graph
MOST_CHECKED = 16 << 10  # bytes of data up to which their CRC is compared: this takes 0.1 us a byte
MOST_FIELDS = 20000  # of a message, and scalars of an event
_HEAD = 12  # bytes before the data
_TAIL = 4  # bytes behind it
_LARGEST_STEP = 10**15 - 1  # that a report takes
MOST_TAGS = 10000  # that the program knows
_LONGEST_TAG = 1000  # bytes; the tag of a longer one is no name of a metric
_MASK = 0xA282EAD8
_SCALARS = b"scalars"  # the plugin of scalars

_FIXED = {1: ("<d", 8), 5: ("<f", 4)}  # type: dict[int, tuple[str, int]]
# dtype of TensorFlow, those that TensorBoard knows: the format of `tensor_content`, and the field with the values else
_TYPES = {
    1: ("<f", 5),  # float
    2: ("<d", 6),  # double
    3: ("<i", 7),  # int32
    4: ("<B", 7),  # uint8
    5: ("<h", 7),  # int16
    6: ("<b", 7),  # int8
    9: ("<q", 10),  # int64
    10: ("<?", 11),  # bool
    14: ("bfloat16", 13),
    17: ("<H", 7),  # uint16
    19: ("<e", 13),  # half
}


class Damaged(Exception):
    """The bytes are no record, or their checksum is wrong."""


class Scalar:
    """A value of a tag."""

    __slots__ = ("at", "step", "tag", "value")

    def __init__(self, tag: str, step: int, at: float, value: float) -> None:
        self.tag = tag
        self.step = step
        self.at = at  # wall time in seconds, by the clock of the writer
        self.value = value


def _make_table() -> "list[int]":
    table = []
    for index in range(256):
        for _ in range(8):
            index = (index >> 1) ^ (0x82F63B78 if index & 1 else 0)
        table.append(index)
    return table


_TABLE = _make_table()


def mask_crc(data: bytes) -> int:
    """Return the masked CRC-32C of bytes."""
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def read_length(head: bytes) -> int:
    """Return the length of the data behind a head.

    Raises:
        Damaged: the checksum is wrong.
    """
    length, crc = struct.unpack("<QI", head)
    if mask_crc(head[:8]) != crc:
        raise Damaged("the checksum of a length is wrong")
    return int(length)


def split_records(buffered: bytes) -> "tuple[list[bytes], int, int]":
    """Return the data of the whole records at the beginning, how many bytes they take, and how many bytes the record
    behind them takes; 0: its head is not there yet. It may be longer than `MOST_DATA`.

    Raises:
        Damaged: the first record is no record. One behind whole records is left for the next call.
    """
    datas = []  # type: list[bytes]
    offset = 0
    while True:
        head = buffered[offset : offset + _HEAD]
        if len(head) < _HEAD:
            return datas, offset, 0
        try:
            length = read_length(head)
            end = offset + _HEAD + length + _TAIL
            if length > MOST_DATA or end > len(buffered):
                return datas, offset, end - offset
            data = buffered[offset + _HEAD : end - _TAIL]
            if length <= MOST_CHECKED and mask_crc(data) != struct.unpack("<I", buffered[end - _TAIL : end])[0]:
                raise Damaged("the checksum of a record is wrong")
        except Damaged:
            if datas:
                return datas, offset, 0
            raise
        datas.append(data)
        offset = end


def read_wall_time(data: bytes) -> float:
    """Return the wall time of an event; 0 when it has none.

    Raises:
        Damaged: it is no event.
    """
    at = 0.0
    for number, value in read_fields(data):
        if number == 1 and isinstance(value, float):
            at = value
    return at


class OtherValue:
    """A value of a summary that is no scalar."""

    __slots__ = ("at", "data", "step")

    def __init__(self, step: int, at: float, data: bytes) -> None:
        self.step = step
        self.at = at
        self.data = data


def read_scalars(
    data: bytes, run: str, scalar_tags: "dict[tuple[str, str], bool]", other_values: "list[OtherValue] | None" = None
) -> "list[Scalar]":
    """Return the scalars of an event.

    Args:
        data: of a record.
        run: of its file.
        scalar_tags: runs and tags of which a tensor with metadata was read, and whether it is a scalar: later ones may
            lack them.
        other_values: takes the values that are no scalars.

    Raises:
        Damaged: it is no event.
    """
    step, at, values = _list_values(data)
    if abs(step) > _LARGEST_STEP:
        return []
    scalars = []  # type: list[Scalar]
    for value in values:
        pair = _read_value(value, run, scalar_tags)
        if pair is not None and len(scalars) < MOST_FIELDS:
            scalars.append(Scalar(pair[0], step, at, pair[1]))
        elif pair is None and other_values is not None:
            other_values.append(OtherValue(step, at, value))
    return scalars


def _list_values(data: bytes) -> "tuple[int, float, Iterator[bytes]]":
    """Return the step, the time and the values of an event."""
    step = 0
    at = 0.0
    summaries = []  # type: list[bytes]
    for number, value in read_fields(data):
        if number == 1 and isinstance(value, float):
            at = value
        elif number == 2 and isinstance(value, int):
            step = _make_signed(value)
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    fields = (field for summary in summaries[:MOST_FIELDS] for field in read_fields(summary))
    return step, at, (value for number, value in fields if number == 1 and isinstance(value, bytes))


def _read_value(data: bytes, run: str, scalar_tags: "dict[tuple[str, str], bool]") -> "tuple[str, float] | None":
    """Return tag and number of a `Value` of a summary; None when it is no scalar."""
    name = b""
    simple = None  # type: float | None
    tensor = metadata = None  # type: bytes | None
    for field, value in read_fields(data):
        if field == 1 and isinstance(value, bytes):
            name = value
        elif field == 2 and isinstance(value, float):
            simple = shorten_float(value)
        elif field == 8 and isinstance(value, bytes):
            tensor = value
        elif field == 9 and isinstance(value, bytes):
            metadata = value
    if not 0 < len(name) <= _LONGEST_TAG:
        return None
    tag = name.decode("utf-8", "replace")
    if simple is not None:
        return tag, simple
    if tensor is None or not _is_scalar((run, tag), metadata, scalar_tags):
        return None
    number = _read_tensor(tensor)
    return None if number is None else (tag, number)


def _is_scalar(key: "tuple[str, str]", metadata: "bytes | None", scalar_tags: "dict[tuple[str, str], bool]") -> bool:
    """Return True for a tag of the plugin of scalars. The first metadata of a tag count, as for TensorBoard."""
    if key in scalar_tags or metadata is None:
        return scalar_tags.get(key, False)
    plugin = b""
    for number, value in read_fields(metadata):
        if number == 1 and isinstance(value, bytes):
            for inner, text in read_fields(value):
                if inner == 1 and isinstance(text, bytes):
                    plugin = text
    if len(scalar_tags) < MOST_TAGS:
        scalar_tags[key] = plugin == _SCALARS
    return plugin == _SCALARS


def _read_tensor(data: bytes) -> "float | None":
    """Return the number of a tensor with one element; None for every other one."""
    dtype = 0
    content = b""
    values = {}  # type: dict[int, list[int | float | bytes]]
    for number, value in read_fields(data):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number == 2 and isinstance(value, bytes):
            if not _has_one_element(value):
                return None
        elif number == 4 and isinstance(value, bytes):
            content = value
        else:
            values.setdefault(number, []).append(value)
    if dtype not in _TYPES:
        return None
    form, field = _TYPES[dtype]
    raw = _unpack_content(form, content) if content else _unpack_value(dtype, field, values.get(field, []))
    if raw is None:
        return None
    return shorten_float(raw) if dtype in (1, 14, 19) else float(raw)


def _has_one_element(shape: bytes) -> bool:
    for number, value in read_fields(shape):
        if number == 2 and isinstance(value, bytes):
            sizes = [size for inner, size in read_fields(value) if inner == 1]
            if sizes[-1:] != [1]:
                return False
    return True


def _unpack_content(form: str, content: bytes) -> "float | None":
    if form == "bfloat16":
        return float(struct.unpack("<f", b"\0\0" + content)[0]) if len(content) == 2 else None
    if struct.calcsize(form) != len(content):
        return None
    return float(struct.unpack(form, content)[0])


def _unpack_value(dtype: int, field: int, values: "list[int | float | bytes]") -> "float | None":
    """Return the only value of a field, which may be packed. A tensor without values holds zero, as in TensorFlow."""
    if not values:
        return 0.0
    value = values[-1]
    if isinstance(value, bytes):
        if field in (5, 6):
            return _unpack_content("<f" if field == 5 else "<d", value)
        number, end = _read_varint(value, 0)
        if end != len(value):
            return None
        value = number
    if isinstance(value, float):
        return value
    if field == 13:
        return _unpack_content("bfloat16" if dtype == 14 else "<e", struct.pack("<H", value & 0xFFFF))
    return float(_make_signed(value))


def shorten_float(value: float) -> float:
    """Return the number with the fewest digits that is the same float of 32 bits: 0.1 for 0.10000000149011612."""
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.unpack("<f", struct.pack("<f", short))[0] == value:
                return short
        except OverflowError:  # rounded up, it is no float of 32 bits
            continue
    return value


def read_fields(data: bytes) -> "list[tuple[int, int | float | bytes]]":
    """Return the fields of a message of protobuf: their number, and an int (varint), a float (fixed) or bytes.

    Raises:
        Damaged: it is no message.
    """
    fields = []  # type: list[tuple[int, int | float | bytes]]
    offset = 0
    size = len(data)
    while offset < size:
        if len(fields) >= MOST_FIELDS:
            raise Damaged("a message has too many fields")
        key, offset = _read_varint(data, offset)
        kind = key & 7
        if kind == 0:
            number, offset = _read_varint(data, offset)
            fields.append((key >> 3, number))
        elif kind == 2:
            length, offset = _read_varint(data, offset)
            end = offset + length
            if end > size:
                raise Damaged("a field is longer than its message")
            fields.append((key >> 3, data[offset:end]))
            offset = end
        elif kind in _FIXED:
            form, width = _FIXED[kind]
            if offset + width > size:
                raise Damaged("a field is longer than its message")
            fields.append((key >> 3, struct.unpack_from(form, data, offset)[0]))
            offset += width
        else:
            raise Damaged("a field has an unknown type")
    return fields


def _read_varint(data: bytes, offset: int) -> "tuple[int, int]":
    """Return a number of variable length, and the offset behind it."""
    number = shift = 0
    while offset < len(data) and shift < 70:
        byte = data[offset]
        offset += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, offset
        shift += 7
    raise Damaged("a number has no end")


def _make_signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
