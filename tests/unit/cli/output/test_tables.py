"""Tables of plain text: as wide as they are, or as wide as the terminal."""

from __future__ import annotations

import pytest

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.widths import measure_width

WIDE = (Column("ID"), Column("PROJECT", shrinks=True), Column("MEM-Used / Total", right=True))


def test_a_table_is_plain_and_as_wide_as_it_is() -> None:
    assert build_table(WIDE, [["4.worker.1", "p" * 60, "1.0 / 2.0"]]) == [
        "ID          PROJECT                                                       MEM-Used / Total",
        f"4.worker.1  {'p' * 60}         1.0 / 2.0",
    ]


def test_a_table_wider_than_the_terminal_keeps_its_ids() -> None:
    shown = build_table(WIDE, [["144.12.worker.10", "p" * 60, "1.0 / 2.0"]], Style(width=40))
    assert max(map(len, shown)) <= 40
    assert shown[0].rstrip().endswith("MEM-Used")
    assert shown[1].split() == ["ID", "PROJECT", "/", "Total"]
    assert shown[2].startswith("144.12.worker.10 ppppp")
    assert "…" in shown[2]


def test_a_column_that_is_narrower_than_it_may_become_stays_so() -> None:
    columns = (Column("ID"), Column("USER", shrinks=True), Column("MESSAGE", folds=True))
    shown = build_table(columns, [["4", "ann", "word " * 10]], Style(width=30))
    assert shown[:2] == ["ID USER MESSAGE", "4  ann  word word word word"]


def test_a_folded_column_keeps_every_word() -> None:
    columns = (Column("HOST"), Column("FOUND", folds=True))
    words = "no way to this host: its name is not known here"
    shown = build_table(columns, [["gpu1", words], ["gpu2", "ok"]], Style(width=30))
    assert max(map(len, shown)) <= 30
    assert " ".join(" ".join(shown[1:-1]).split()) == f"gpu1 {words}"
    assert shown[-1] == "gpu2 ok"
    assert build_table(columns, [["gpu1", words]]) == ["HOST  FOUND", f"gpu1  {words}"]


@pytest.mark.parametrize("name", ["日本", "🙂 toaster", "größe", "e\u0301te", "한국어"])
def test_columns_are_aligned_below_wide_characters(name: str) -> None:
    shown = build_table((Column("PROJECT"), Column("STATE")), [[name, "RUNNING"], ["toaster", "FAILED"]])
    assert {
        measure_width(row[: row.index(word)]) for row, word in zip(shown, ("STATE", "RUNNING", "FAILED"), strict=True)
    } == {measure_width(shown[0].partition("STATE")[0])}


def test_a_right_column_of_wide_characters_ends_at_one_place() -> None:
    shown = build_table((Column("ID"), Column("NAME", right=True)), [["1", "日本"], ["2", "long name"]])
    assert {measure_width(row) for row in shown} == {len("ID  long name")}


@pytest.mark.parametrize("width", range(20, 60))
def test_a_table_of_wide_characters_fits_the_terminal(width: int) -> None:
    columns = (Column("ID"), Column("PROJECT", shrinks=True), Column("WHY", folds=True))
    row = ["4.worker.1", "日本語" * 20, "このホストには GPU が足りません " * 2]
    shown = build_table(columns, [row], Style(width=max(width, 30)))
    assert max(map(measure_width, shown)) <= max(width, 30)


def test_a_table_without_rows_has_its_titles() -> None:
    assert build_table(WIDE, []) == ["ID  PROJECT  MEM-Used / Total"]
    assert build_table(WIDE, [], Style(width=5))
