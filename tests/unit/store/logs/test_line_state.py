"""The states of one line: writer, recovery and reader go through the same ones."""

from __future__ import annotations

import pytest

from riseml.store.logs.line_state import BETWEEN_LINES, LONGEST_LINE, LinePhase, LineState, RecordKind, cut_text
from tests.unit.store.logs.log_frames import HALF

CUT_LINE = LineState(LinePhase.CUT)
TABLE = [  # state, size of the piece, whether it ends its line, its kind, the state behind it
    (BETWEEN_LINES, 9, True, RecordKind.END, BETWEEN_LINES),
    (BETWEEN_LINES, 9, False, RecordKind.GOES_ON, LineState(LinePhase.OPEN, 9)),
    (BETWEEN_LINES, 0, False, RecordKind.GOES_ON, LineState(LinePhase.OPEN, 0)),
    (BETWEEN_LINES, LONGEST_LINE, False, RecordKind.GOES_ON, LineState(LinePhase.OPEN, LONGEST_LINE)),
    (BETWEEN_LINES, LONGEST_LINE + 1, True, RecordKind.END, BETWEEN_LINES),
    (BETWEEN_LINES, LONGEST_LINE + 1, False, RecordKind.CUT, CUT_LINE),
    (LineState(LinePhase.OPEN, HALF), HALF, False, RecordKind.GOES_ON, LineState(LinePhase.OPEN, LONGEST_LINE)),
    (LineState(LinePhase.OPEN, HALF), HALF + 1, False, RecordKind.CUT, CUT_LINE),
    (LineState(LinePhase.OPEN, HALF), HALF + 1, True, RecordKind.END, BETWEEN_LINES),
    (CUT_LINE, 9, False, RecordKind.DROPPED, CUT_LINE),
    (CUT_LINE, 9, True, RecordKind.DROPPED_END, BETWEEN_LINES),
]


@pytest.mark.parametrize(("state", "size", "ends_line", "kind", "after"), TABLE)
def test_each_piece_has_one_kind_and_leads_to_one_state(
    state: LineState, size: int, *, ends_line: bool, kind: RecordKind, after: LineState
) -> None:
    assert state.classify_piece(size, ends_line=ends_line) is kind
    assert state.feed(kind, size) == after


def test_the_table_has_every_kind_and_every_phase() -> None:
    assert {kind for _, _, _, kind, _ in TABLE} == set(RecordKind)
    assert {state.phase for state, *_ in TABLE} == set(LinePhase)


def test_each_kind_has_its_own_code_for_each_stream() -> None:
    codes = b"".join(kind.codes for kind in RecordKind)
    assert len(set(codes)) == len(codes) == 4 * len(RecordKind)


def test_the_codes_of_existing_log_files_stay() -> None:
    assert [kind.codes[1:].decode() for kind in RecordKind] == ["123", "abc", "ABC", "xyz", "XYZ"]
    assert RecordKind.END.codes[:1] == b"0"


def test_a_line_is_cut_at_its_limit_however_its_pieces_fall() -> None:
    whole = cut_text(b"x" * (LONGEST_LINE + 1))
    assert b"x" * HALF + cut_text(b"x" * (HALF + 1), HALF) == whole
    assert cut_text(whole) == whole
    assert cut_text(b"x" * HALF, HALF) == b"x" * HALF
