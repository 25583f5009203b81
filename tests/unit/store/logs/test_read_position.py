"""Where a reader continues: it loses and repeats nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from riseml.model import Frame, JobKey
from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.logs.read_position import ReadPosition
from tests.unit.store.logs.log_frames import KEY, OTHER, frame


@given(
    st.lists(
        st.tuples(
            st.sampled_from([KEY, OTHER]), st.binary(max_size=40), st.booleans(), st.sampled_from([1, 2]), st.booleans()
        ),
        max_size=30,
    )
)
def test_a_reader_from_any_line_loses_and_repeats_nothing(rows: list[tuple[JobKey, bytes, bool, int, bool]]) -> None:
    """With any lines in pieces, of any jobs, and from any line on."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        logs = LogStore(Path(folder))
        batches: list[tuple[JobKey, list[Frame]]] = []
        for index, (key, text, whole, stream, alone) in enumerate(rows):
            piece = frame(index, text.replace(b"\n", b"") + (b"\n" if whole else b""), stream)
            if batches and batches[-1][0] == key and not alone:
                batches[-1][1].append(piece)
            else:
                batches.append((key, [piece]))
        for key, pieces in batches:
            logs.append_frames(key, pieces)
        for key in (KEY, OTHER):
            logs.append_frames(key, [frame(99, b"the end\n", 1), frame(99, b"the end\n", 2)])
        lines = list(read_all_lines(logs, 4))
        assert len(lines) == 4 + sum(whole for _, _, whole, _, _ in rows)
        for number, line in enumerate(lines):
            rest = list(read_all_lines(logs, 4, line.end))
            assert [replace(one, end=ReadPosition()) for one in rest] == [
                replace(one, end=ReadPosition()) for one in lines[number + 1 :]
            ]


def test_a_position_among_pieces_names_where_the_open_line_began(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"a long ")])
    logs.append_frames(OTHER, [frame(2, b"between\n")])
    logs.append_frames(KEY, [frame(1, b"line\n"), frame(3, b"after\n")])
    between, long, after = read_all_lines(logs, 4)
    assert (between.text, long.text, after.text) == (b"between", b"a long line", b"after")
    begun = len(b"a worker.1 1 2026-08-31T07:23:00.1Z a long \n")
    size = begun + len(b"1 master 2 2026-08-31T07:23:00.2Z between\n")
    assert between.end == ReadPosition(size, open_bytes=size)
    assert list(read_all_lines(logs, 4, between.end)) == [long, after]
