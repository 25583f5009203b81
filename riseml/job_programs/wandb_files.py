"""Reads the runs that `wandb` writes without a connection: a part of `event_reader`. Python 3.6 or newer, standard
library only.

With WANDB_MODE=offline a run is the folder `wandb/offline-run-TIME-ID` with a file `run-ID.wandb`, which grows (wandb
0.31 writes every 15 seconds). It has a head of 7 bytes, and then blocks of 32 KiB with pieces of records: CRC-32 of
what follows the length (4 bytes), length (2 bytes), kind (1 byte: 1 whole, 2 first, 3 middle, 4 last), data. A record
is a message of protobuf, of which this module reads the few fields with values:

    Record     2 history, 3 summary, 5 config, 17 run, 18 exit
    history    1 item (repeated), 2 step: 1 number
    summary    1 update (repeated items)
    item       1 key, 2 nested_key (repeated), 5 integer, 6 number, 16 value_json
    run        1 run_id, 4 config, 8 display_name, 13 host, 17 start_time: 1 seconds
    config     1 update (repeated items)

The metrics of the first run of a job have their own names; those of other runs have the name of the run before them. A
summary repeats what the history says, and may do so before it: the values that it alone has are given at the end.
"""

import contextlib
import fcntl
import json
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator

from riseml.job_programs.event_records import Damaged, read_fields

WANDB_END = ".wandb"
CONFIG_FILE = "config.json"  # beside the file of a run: its config, which wandb itself writes into no other file
MOST_WANDB_RUNS = 1000
_WANDB_CHUNK = 1 << 18  # bytes that are read at once
_MOST_CONFIG = 1 << 20  # characters
_MOST_RECORD = 8 << 20  # bytes; a longer record is passed over
_RUN_HEAD = b":W&B\xe1\xbe\0"
_BLOCK = 1 << 15
_PIECE_HEAD = 7
_WHOLE, _FIRST, _MIDDLE, _LAST = range(1, 5)
_LONGEST_NUMBER = 40  # characters
_LONGEST_KEY = 1000
_MOST_RUN_NAME = 100  # characters
_FIRST_WANDB_EARLY = 1.0  # seconds by which the start of a run, in whole seconds, may differ from that of its job
_LARGEST_STEP = 10**15 - 1  # that a report takes
_LAST_MOMENT = 253402300800  # seconds since 1970; the end of the year 9999
_TYPE = "_type"  # a key below that of a table, an image or another object


class WandbRecord:
    """What a record has logged."""

    __slots__ = ("at", "step", "values")

    def __init__(self, values: "dict[str, float]", step: "int | None" = None, at: "float | None" = None) -> None:
        self.values = values
        self.step = step  # None: a summary
        self.at = at  # seconds since 1970


class WandbRun:
    """What is known of one run."""

    def __init__(self) -> None:
        self.name = ""
        self.host = ""
        self.began = None  # type: float | None
        self.config = {}  # type: dict[str, str]
        self.has_new_config = False
        self.summary = {}  # type: dict[str, float]
        self.history_names = set()  # type: set[str]

    def read_record(self, data: bytes) -> "WandbRecord | None":
        """Return what a record has logged; None: nothing.

        Raises:
            Damaged: it is no record.
        """
        for field, value in read_fields(data):
            if not isinstance(value, bytes):
                continue
            if field == 2:
                return self._read_history(value)
            if field == 18:
                return self.take_summary()
            if field == 3:
                self.summary.update(_read_numbers(_read_items(value)))
            elif field == 5:
                self._read_config(value)
            elif field == 17:
                self._read_run(value)
        return None

    def take_summary(self) -> WandbRecord:
        """Return the values of the summary that are in no history, once."""
        values = {name: number for name, number in self.summary.items() if name not in self.history_names}
        self.summary = {}
        return WandbRecord(values)

    def _read_history(self, data: bytes) -> "WandbRecord | None":
        items = _read_items(data)
        step = int(_read_json_number(items.get("_step", "")) or 0)
        for field, value in read_fields(data):
            if field == 2 and isinstance(value, bytes):
                step = next((number for inner, number in read_fields(value) if inner == 1 and type(number) is int), 0)
        at = _read_json_number(items.get("_timestamp", ""))
        values = _read_numbers(items)
        if not values or at is None or not 0 <= at < _LAST_MOMENT or step > _LARGEST_STEP:
            return None
        self.history_names.update(values)
        return WandbRecord(values, step, at)

    def _read_run(self, data: bytes) -> None:
        run_id = ""
        for field, value in read_fields(data):
            if not isinstance(value, bytes):
                continue
            if field == 1:
                run_id = value.decode("utf-8", "replace")
            elif field == 4:
                self._read_config(value)
            elif field == 8:
                self.name = value.decode("utf-8", "replace").strip()[:_MOST_RUN_NAME]
            elif field == 13:
                self.host = value.decode("utf-8", "replace")
            elif field == 17:
                seconds = [number for inner, number in read_fields(value) if inner == 1]
                self.began = float(seconds[0]) if seconds and type(seconds[0]) is int else None
        self.name = self.name or run_id[:8]

    def _read_config(self, data: bytes) -> None:
        for name, text in _read_items(data).items():
            if not name.startswith("_") and sum(map(len, self.config.values())) + len(text) < _MOST_CONFIG:
                self.config[name] = text
                self.has_new_config = True


class WandbFile:
    """The file of one run, and how far it was read.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.run = WandbRun()
        self.offset = 0  # of the next piece
        self.is_left = False  # it is damaged, or another job reads it
        self.prefix = None  # type: str | None
        self.lock = -1  # a descriptor that no other reader has locked; -1: there is none
        self._record = b""  # the begin of a record
        self._is_passed_over = False

    def write_config(self) -> None:
        """Write the config of the run beside its file, where it has changed."""
        if not self.run.has_new_config:
            return
        self.run.has_new_config = False
        pairs = ", ".join(f"{json.dumps(name)}: {text}" for name, text in sorted(self.run.config.items()))
        path = os.path.join(os.path.dirname(self.path), CONFIG_FILE)
        with contextlib.suppress(OSError, ValueError):
            json.loads("{" + pairs + "}")
            with open(path + ".new", "w") as writer:
                writer.write("{" + pairs + "}\n")
            os.replace(path + ".new", path)

    def read_records(self, data: bytes) -> "Iterator[bytes]":
        """Give the records of the bytes at the offset, and move the offset.

        Raises:
            Damaged: they are none.
        """
        start = self.offset
        if not start:
            if len(data) < len(_RUN_HEAD):
                return
            if not data.startswith(_RUN_HEAD):
                raise Damaged("it does not begin as a run does")
            self.offset = len(_RUN_HEAD)
        while True:
            left = _BLOCK - self.offset % _BLOCK
            if left < _PIECE_HEAD:  # the rest of a block is empty
                self.offset += left
            next_piece = _read_piece(data, self.offset - start, _BLOCK - self.offset % _BLOCK)
            if next_piece is None:
                return
            kind, piece = next_piece
            self.offset += _PIECE_HEAD + len(piece)
            if self._add_piece(kind, piece):
                yield self._record

    def _add_piece(self, kind: int, piece: bytes) -> bool:
        """Add a piece to the record; return True when that is whole."""
        if kind in (_WHOLE, _FIRST):
            self._record = b""
            self._is_passed_over = False
        self._is_passed_over |= len(self._record) + len(piece) > _MOST_RECORD
        self._record = b"" if self._is_passed_over else self._record + piece
        return kind in (_WHOLE, _LAST) and not self._is_passed_over


def _read_piece(data: bytes, position: int, most: int) -> "tuple[int, bytes] | None":
    """Return the kind and the data of the piece at a position; None: it is not whole yet.

    Args:
        data: of the file.
        position: of the piece.
        most: bytes that are left in its block.

    Raises:
        Damaged: it is none.
    """
    if position + _PIECE_HEAD > len(data):
        return None
    crc, length, kind = struct.unpack_from("<IHB", data, position)
    end = position + _PIECE_HEAD + length
    if length + _PIECE_HEAD > most or not _WHOLE <= kind <= _LAST:
        raise Damaged("a record has a wrong length or kind")
    if end > len(data):
        return None
    if zlib.crc32(data[position + _PIECE_HEAD - 1 : end]) != crc:
        raise Damaged("the checksum of a record is wrong")
    return kind, data[position + _PIECE_HEAD : end]


class WandbRuns:
    """The runs of a job.

    Args:
        jobs: of the experiment that have a reader: they may see the same files.
        began: when the job began, in seconds since 1970. Of a run that is older only newer values are read.
        tell_once: prints a problem, once for each key.
    """

    def __init__(self, jobs: int, began: float, tell_once: "Callable[[str, str], None]") -> None:
        self.jobs = jobs
        self.began = began
        self.tell_once = tell_once
        self.files = {}  # type: dict[str, WandbFile]
        self.has_first = False  # a run has metrics without its name
        self.has_more = False  # the last call has left something

    def add_file(self, path: str) -> None:
        """Take a file."""
        if path in self.files or os.path.islink(path) or not os.path.isfile(path):
            return
        if len(self.files) >= MOST_WANDB_RUNS:
            self.tell_once("wandb", f"only {MOST_WANDB_RUNS} runs of wandb are read")
            return
        self.files[path] = WandbFile(path)

    def read_new(self, most: int, deadline: float = 0.0) -> "Iterator[WandbRecord]":
        """Give what is new, with the names of metrics.

        Args:
            most: about how many bytes are read.
            deadline: when to end, by time.monotonic(); 0: never.
        """
        self.has_more = False
        for path in sorted(self.files):
            if most <= 0:
                self.has_more = True
            if most <= 0 or (deadline and time.monotonic() > deadline):
                return
            file = self.files[path]
            begin = file.offset
            yield from self._read_file(file)
            most -= file.offset - begin
            if deadline and not file.is_left and not self.has_more:  # the job has ended, and this run perhaps has not
                yield from self._give(file, file.run.take_summary())

    def _read_file(self, file: WandbFile) -> "Iterator[WandbRecord]":
        try:
            data = b"" if file.is_left else self._read_bytes(file)
        except OSError:  # a run that was removed
            self._drop(file)
            return
        if data:
            yield from self._read_values(file, data)
            self.has_more |= len(data) == _WANDB_CHUNK and not file.is_left
            file.write_config()

    def _drop(self, file: WandbFile) -> None:
        del self.files[file.path]
        if file.lock >= 0:
            os.close(file.lock)

    def _read_bytes(self, file: WandbFile) -> bytes:
        """Return what is new; empty: nothing, or another job reads this file."""
        if os.stat(file.path).st_size <= file.offset:
            return b""
        descriptor = file.lock
        if descriptor < 0:
            descriptor = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if self.jobs > 1 and file.lock < 0:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    file.lock = descriptor
                except BlockingIOError:
                    file.is_left = True
                    return b""
                except OSError:  # a file system without locks: the host of the run decides
                    pass
            return os.pread(descriptor, _WANDB_CHUNK, file.offset)
        finally:
            if file.lock < 0:
                os.close(descriptor)

    def _read_values(self, file: WandbFile, data: bytes) -> "Iterator[WandbRecord]":
        try:
            for content in file.read_records(data):
                record = file.run.read_record(content)
                if self.jobs > 1 and file.run.host not in ("", os.uname().nodename):
                    file.is_left = True
                    return
                if record is not None:
                    yield from self._give(file, record)
        except Damaged as problem:
            file.is_left = True
            self.tell_once(file.path, f"{file.path!r} is not read beyond byte {file.offset}: {problem}")

    def _is_new(self, run: WandbRun, record: WandbRecord) -> bool:
        since = self.began - _FIRST_WANDB_EARLY
        return (run.began is not None and run.began >= since) or (record.at is not None and record.at >= since)

    def _give(self, file: WandbFile, record: WandbRecord) -> "Iterator[WandbRecord]":
        """Give a record with the names of metrics, if this attempt has logged it."""
        if not record.values or not self._is_new(file.run, record):
            return
        if file.prefix is None:
            file.prefix = (file.run.name or "run") + "/" if self.has_first else ""
            self.has_first = True
        values = {file.prefix + name: value for name, value in record.values.items()}
        yield WandbRecord(values, record.step, record.at)


def _read_items(data: bytes) -> "dict[str, str]":
    """Return the items of a message by name, as texts of JSON; parts of a name have dots between them. Tables, images
    and other objects are left out.
    """
    items = {}  # type: dict[str, str]
    objects = set()  # type: set[str]
    for field, value in read_fields(data):
        if field == 1 and isinstance(value, bytes):
            parts, text = _read_item(value)
            if parts[-1:] == [_TYPE]:
                objects.add(".".join(parts[:-1]) + ".")
            items[".".join(parts)] = text
    return {name: text for name, text in items.items() if name and not any(map(name.startswith, objects))}


def _read_item(data: bytes) -> "tuple[list[str], str]":
    """Return the parts of the name of an item, and its value as a text of JSON."""
    parts = []  # type: list[str]
    text = ""
    for field, value in read_fields(data):
        if field == 5 and isinstance(value, int):
            text = str((value >> 1) ^ -(value & 1))
        elif field == 6 and isinstance(value, float):
            text = repr(value)
        elif isinstance(value, bytes) and field in (1, 2) and value:
            parts.append(value[:_LONGEST_KEY].decode("utf-8", "replace"))
        elif isinstance(value, bytes) and field == 16:
            text = value.decode("utf-8", "replace")
    return parts, text


def _read_numbers(items: "dict[str, str]") -> "dict[str, float]":
    """Return the items that are numbers. wandb's own ones begin with `_`, and no metric is called `step`."""
    numbers = ((name, _read_json_number(text)) for name, text in items.items() if not name.startswith("_"))
    return {name: number for name, number in numbers if number is not None and name != "step"}


def _read_json_number(text: str) -> "float | None":
    if not text or len(text) > _LONGEST_NUMBER or text[0] not in "-0123456789NI":
        return None
    try:
        return float(text)
    except ValueError:
        return None
