"""Logs: what was written is read, whatever was cut off."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from riseml.model import Frame, JobKey, LogCursor
from riseml.names import JobName
from riseml.store.logs import LONGEST_LINE, Logs, read_all

KEY = JobKey(4, JobName("worker.1"), 1)
OTHER = JobKey(4, JobName("master"), 2)


def frame(index: int, text: bytes, stream: int = 1) -> Frame:
    return Frame(f"2026-08-31T07:23:{index // 10:02d}.{index % 10}Z", stream, text)


def texts(logs: Logs) -> list[tuple[str, bytes]]:
    return [(line.job, line.text) for line in read_all(logs, 4)]


def test_lines_come_back_in_order(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.append(KEY, [frame(1, b"one\n"), frame(2, b"two\r\n", 2)])
    logs.append(OTHER, [frame(3, b"\xff\n"), frame(4, b"\n")])
    assert texts(logs) == [("worker.1", b"one"), ("worker.1", b"two\r"), ("master", b"\xff"), ("master", b"")]


def test_a_cursor_counts_the_frames_of_one_instant(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.append(KEY, [frame(1, b"a\n"), frame(2, b"b\n"), frame(2, b"c\n")])
    assert logs.cursor(KEY) == LogCursor("2026-08-31T07:23:00.2Z", 2)
    assert Logs(tmp_path).cursor(KEY) == logs.cursor(KEY), "a new server finds the same cursor"
    assert logs.cursor(OTHER) == LogCursor()


def test_a_torn_record_is_cut_off(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.append(KEY, [frame(1, b"a\n")])
    with (tmp_path / "4.log").open("ab") as file:
        file.write(b"2026-08-31T07:23:09Z 1 worker.1 1 tor")
    again = Logs(tmp_path)
    assert again.cursor(KEY).at == "2026-08-31T07:23:00.1Z"
    again.append(KEY, [frame(2, b"b\n")])
    assert texts(again) == [("worker.1", b"a"), ("worker.1", b"b")]


def test_a_long_line_in_pieces_is_one_line(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.append(KEY, [frame(1, b"x" * 9), frame(1, b"y" * 9)])
    logs.append(OTHER, [frame(2, b"between\n")])
    assert texts(logs) == [], "the line before it goes on"
    logs.append(KEY, [frame(1, b"z\n")])
    assert texts(logs) == [("master", b"between"), ("worker.1", b"x" * 9 + b"y" * 9 + b"z")]


def test_an_unfinished_line_is_ended_with_its_job(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.append(KEY, [frame(1, b"no newline")])
    logs.finish(KEY)
    logs.finish(KEY)
    assert texts(logs) == [("worker.1", b"no newline")]
    assert logs.cursor(KEY).seen == 1


def test_a_line_without_end_does_not_hold_up_the_others(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    for _ in range(100):
        logs.append(KEY, [frame(1, b"x" * 16384)])
    logs.append(OTHER, [frame(2, b"alive\n")])
    found = texts(logs)
    assert ("master", b"alive") in found
    assert max(len(text) for _, text in found) <= LONGEST_LINE + 100


@given(
    st.lists(st.tuples(st.sampled_from([KEY, OTHER]), st.binary(max_size=40), st.booleans()), max_size=30), st.data()
)
def test_reading_on_from_any_line_loses_nothing(rows: list[tuple[JobKey, bytes, bool]], data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        logs = Logs(Path(folder))
        for index, (key, text, whole) in enumerate(rows):
            logs.append(key, [frame(index, text.replace(b"\n", b"") + (b"\n" if whole else b""))])
        logs.finish(KEY)
        logs.finish(OTHER)
        lines = list(read_all(logs, 4))
        if not lines:
            return
        chosen = data.draw(st.integers(0, len(lines) - 1))
        rest, _ = logs.read(4, lines[chosen].end)
        for line in lines[chosen + 1 :]:
            assert any(line.job == other.job and other.text.endswith(line.text[-5:]) for other in rest)
