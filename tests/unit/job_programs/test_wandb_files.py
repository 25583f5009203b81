"""The files of wandb are read as its own messages say, in whatever pieces they grow, and bytes that are none harm
nothing.
"""

from __future__ import annotations

import json
import math
import os
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from riseml.job_programs import wandb_files
from riseml.job_programs.event_reader import EventReader
from riseml.job_programs.event_records import Damaged
from riseml.job_programs.wandb_files import WandbFile, WandbRun
from riseml.store.logs.report_lines import split_report

BEGAN = 1795907621.0
NAME = "run-a.wandb"
HEAD = b":W&B\xe1\xbe\0"
_TEXT, _INT, _SINT, _DOUBLE, _MESSAGE = 9, 3, 18, 1, 11
_FIELDS: dict[str, list[tuple[str, int, int, str, bool]]] = {  # of wandb_internal.proto of wandb 0.31
    "Step": [("num", 1, _INT, "", False)],
    "Item": [
        ("key", 1, _TEXT, "", False),
        ("nested_key", 2, _TEXT, "", True),
        ("integer", 5, _SINT, "", False),
        ("number", 6, _DOUBLE, "", False),
        ("value_json", 16, _TEXT, "", False),
    ],
    "History": [("item", 1, _MESSAGE, "Item", True), ("step", 2, _MESSAGE, "Step", False)],
    "Update": [("update", 1, _MESSAGE, "Item", True)],
    "Time": [("seconds", 1, _INT, "", False)],
    "Run": [
        ("run_id", 1, _TEXT, "", False),
        ("config", 4, _MESSAGE, "Update", False),
        ("display_name", 8, _TEXT, "", False),
        ("host", 13, _TEXT, "", False),
        ("start_time", 17, _MESSAGE, "Time", False),
    ],
    "Exit": [("exit_code", 1, _INT, "", False)],
    "Record": [
        ("num", 1, _INT, "", False),
        ("history", 2, _MESSAGE, "History", False),
        ("summary", 3, _MESSAGE, "Update", False),
        ("config", 5, _MESSAGE, "Update", False),
        ("run", 17, _MESSAGE, "Run", False),
        ("exit", 18, _MESSAGE, "Exit", False),
        ("uuid", 19, _TEXT, "", False),
    ],
}


def make_messages() -> dict[str, Any]:
    """Return the messages as protobuf's own library makes them."""
    file = descriptor_pb2.FileDescriptorProto(name="wandb.proto", package="w", syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, type_name, is_repeated in fields:
            message.field.add(
                name=field,
                number=number,
                type=kind,
                type_name=f".w.{type_name}" if type_name else None,
                label=3 if is_repeated else 1,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"w.{name}")) for name in _FIELDS}


MESSAGES = make_messages()


def make_item(key: str | tuple[str, ...], text: str) -> Message:
    item: Message = MESSAGES["Item"](value_json=text, **({"key": key} if isinstance(key, str) else {"nested_key": key}))
    return item


def history(step: int, seconds: float, logged: Mapping[str, object] | None = None, **values: object) -> bytes:
    items = [make_item((name,), json.dumps(value)) for name, value in {**(logged or {}), **values}.items()]
    items.append(make_item("_timestamp", repr(BEGAN + seconds)))
    record = MESSAGES["Record"](history=MESSAGES["History"](item=items, step=MESSAGES["Step"](num=step)))
    return bytes(record.SerializeToString())


def run_record(name: str, seconds: float = 0.0, host: str = "", **config: object) -> bytes:
    update = MESSAGES["Update"](update=[make_item(key, json.dumps(value)) for key, value in config.items()])
    began = MESSAGES["Time"](seconds=int(BEGAN + seconds))
    run = MESSAGES["Run"](run_id="1a2b3c4d5e", display_name=name, host=host, config=update, start_time=began)
    return bytes(MESSAGES["Record"](run=run).SerializeToString())


def summary(**values: object) -> bytes:
    update = MESSAGES["Update"](update=[make_item(name, json.dumps(value)) for name, value in values.items()])
    return bytes(MESSAGES["Record"](summary=update).SerializeToString())


EXIT = MESSAGES["Record"](exit=MESSAGES["Exit"](exit_code=1)).SerializeToString()


def pack(records: Sequence[bytes]) -> bytes:
    """Return the bytes of a file, as LevelDB's log format has them, with the head of wandb."""
    data = bytearray(HEAD)
    for record in records:
        position = 0
        while True:
            left = 32768 - len(data) % 32768
            if left < 7:
                data += bytes(left)
                left = 32768
            piece = record[position : position + left - 7]
            is_last = position + len(piece) == len(record)
            kind = bytes([(1 if is_last else 2) if position == 0 else (4 if is_last else 3)])
            data += struct.pack("<IH", zlib.crc32(kind + piece), len(piece)) + kind + piece
            position += len(piece)
            if is_last:
                break
    return bytes(data)


class Runs:
    """The folder of one job."""

    def __init__(self, output: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.output = output
        self.capture = capture
        self.errors = ""
        self.start_reader()

    def start_reader(self, jobs: int = 1, began: float = BEGAN) -> EventReader:
        self.reader = EventReader(str(self.output), jobs, began, trackers=("tensorboard", "wandb"))
        return self.reader

    def write(self, folder: str, data: bytes) -> Path:
        path = self.output / "wandb" / folder / NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def read(self, deadline: float = 0.0) -> list[dict[str, float]]:
        self.reader.next_search = 0
        self.reader.read_new(deadline)
        out, errors = self.capture.readouterr()
        self.errors += errors
        reports = []
        for line in out.split("\n")[:-1]:
            _, report = split_report(line.encode())
            assert report is not None
            values = json.loads(report.removeprefix(b"riseml.report "))
            values.pop("riseml.at", None)
            reports.append(values)
        return reports


@pytest.fixture
def runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path, capfd)


VALUES = st.dictionaries(
    st.sampled_from(["loss", "val/acc", "损失", "a.b", "_own", "step"]),
    st.one_of(st.floats(), st.integers(-(10**18), 10**18), st.booleans(), st.text(max_size=9), st.none()),
)


@given(
    rows=st.lists(st.tuples(st.integers(0, 10**15 - 1), VALUES), max_size=6),
    padding=st.integers(0, 70000),
    cuts=st.lists(st.integers(1, 40000), min_size=1, max_size=9),
)
def test_a_file_that_grows_in_any_pieces_is_read_as_it_was_logged(
    rows: list[tuple[int, dict[str, object]]], padding: int, cuts: list[int]
) -> None:
    """Also where records end at the end of a block, or reach over several."""
    data = pack([history(step, 1, values, pad="x" * padding) for step, values in rows])
    file = WandbFile("run")
    records = []
    size = 0
    while size < len(data):
        size += cuts[size % len(cuts)]
        for content in file.read_records(data[file.offset : size]):
            parsed = MESSAGES["Record"].FromString(content)
            record = file.run.read_record(content)
            records.append((parsed.history.step.num, {} if record is None else record.values))
    expected = [
        {
            name: float(str(value))
            for name, value in values.items()
            if type(value) in (int, float) and name not in ("_own", "step")
        }
        for _, values in rows
    ]
    assert [step for step, _ in records] == [step for step, _ in rows]
    for (_, values), wanted in zip(records, expected, strict=True):
        assert values.keys() == wanted.keys()
        assert all(
            values[name] == wanted[name] or (math.isnan(values[name]) and math.isnan(wanted[name])) for name in values
        )


@given(data=st.binary(max_size=300), at=st.integers(0, 400))
def test_bytes_that_are_no_run_are_refused_or_have_no_values(data: bytes, at: int) -> None:
    good = pack([run_record("a"), history(1, 1, loss=1), EXIT])
    file = WandbFile("run")
    try:
        for content in file.read_records(good[:at] + data):
            file.run.read_record(content)
        WandbRun().read_record(data)
    except Damaged:
        pass


def test_runs_grow_and_those_after_the_first_have_their_names(runs: Runs) -> None:
    first = pack(
        [run_record("outer", lr=0.1), history(0, 1, loss=0.5), summary(loss=0.5, best=7), history(1, 2, loss=2)]
    )
    path = runs.write("offline-run-1", first[:-5])
    assert runs.read() == [{"step": 0, "loss": 0.5}]
    path.write_bytes(
        pack(
            [
                run_record("outer", lr=0.1),
                history(0, 1, loss=0.5),
                summary(loss=0.5, best=7),
                history(1, 2, loss=2),
                EXIT,
            ]
        )
    )
    runs.write("offline-run-2", pack([run_record("fold-2", 3), history(5, 4, loss=9), summary(end=1)]))
    assert runs.read() == [{"step": 1, "loss": 2}, {"best": 7}, {"step": 5, "fold-2/loss": 9}]
    assert runs.read(time.monotonic() + 60) == [{"fold-2/end": 1}]
    assert json.loads((path.parent / "config.json").read_text()) == {"lr": 0.1}
    assert runs.errors == ""


def test_parts_of_tables_are_no_metrics() -> None:
    items = [make_item(("table", "_type"), '"table-file"'), make_item(("table", "size"), "30"),
             make_item(("val", "acc"), "0.5"), make_item("_timestamp", "1"),
             MESSAGES["Item"](key="whole", integer=-3), MESSAGES["Item"](key="real", number=0.25)]  # fmt: skip
    record = WandbRun().read_record(MESSAGES["Record"](history=MESSAGES["History"](item=items)).SerializeToString())
    assert record is not None
    assert record.values == {"val.acc": 0.5, "whole": -3, "real": 0.25}


def test_what_an_earlier_attempt_has_logged_is_not_read_again(runs: Runs) -> None:
    runs.write("offline-run-1", pack([run_record("old", -60), history(1, -50, loss=1), summary(best=1), EXIT]))
    runs.write("offline-run-2", pack([run_record("on", -60), history(1, -50, loss=1), history(2, 2, loss=2)]))
    assert runs.read(time.monotonic() + 60) == [{"step": 2, "loss": 2}]


@pytest.mark.parametrize(("host", "count"), [(os.uname().nodename, 1), ("another", 0)])
def test_of_several_jobs_one_reads_a_run(runs: Runs, host: str, count: int) -> None:
    runs.write("offline-run-1", pack([run_record("a", host=host), history(1, 1, loss=1)]))
    other = runs.start_reader(jobs=2)
    assert len(runs.read()) == count
    runs.start_reader(jobs=2)
    assert runs.read() == []
    assert other.wandb is not None


def test_hostile_files_are_bounded(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other bytes, a wrong checksum, a hole, a long record, a pipe, links, and too many runs: each is told once."""
    monkeypatch.setattr(wandb_files, "_MOST_RECORD", 100000)
    monkeypatch.setattr(wandb_files, "MOST_WANDB_RUNS", 8)
    runs.write("a-long", pack([run_record("a"), history(1, 1, text="x" * 300000, loss=1), history(2, 1, loss=2)]))
    runs.write("b-other", b"something else")
    damaged = bytearray(pack([run_record("c"), history(1, 1, loss=3), history(1, 1, loss=4)]))
    damaged[-1] ^= 1
    runs.write("c-damaged", bytes(damaged))
    with runs.write("d-hole", HEAD).open("r+b") as file:
        file.truncate(1 << 40)
    pipe = runs.write("e-pipe", b"")
    pipe.unlink()
    os.mkfifo(pipe)
    pipe.with_name("run-b.wandb").symlink_to("/dev/zero")
    for number in range(9):
        runs.write(f"f-{number}", pack([run_record("f"), history(1, 1, {f"n{name}": 1 for name in range(50)})]))
    values = [value for report in runs.read(time.monotonic() + 60) for name, value in report.items() if name != "step"]
    assert {1, 2, 3} == set(values)
    assert len(values) < 300
    words = ["does not begin as a run", "the checksum of a record", "wrong length or kind", "only 8 runs of wandb"]
    assert [runs.errors.count(word) for word in words] == [1, 1, 1, 1]
