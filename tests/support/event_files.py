"""Writes event files of TensorBoard with the standard library alone, for jobs of tests.

Independent of `riseml.job_programs.event_records`, which other tests compare with TensorBoard's own reader.
"""

import struct
import time


def _crc(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _bytes(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, *_varint(len(data))]) + data


def _varint(number: int) -> "list[int]":
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return [*parts, number]


def make_record(data: bytes) -> bytes:
    """Return a record with this data."""
    head = struct.pack("<Q", len(data))
    return head + _crc(head) + data + _crc(data)


def make_event(step: int, at: "float | None" = None, **values: float) -> bytes:
    """Return the record of an event with scalars."""
    event = b"\x09" + struct.pack("<d", time.time() if at is None else at)
    event += bytes([2 << 3, *_varint(step)])
    if not values:
        return make_record(event + _bytes(3, b"brain.Event:2"))
    summary = b""
    for tag, value in values.items():
        summary += _bytes(1, _bytes(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
    return make_record(event + _bytes(5, summary))
