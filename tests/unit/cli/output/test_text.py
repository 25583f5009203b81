"""Foreign text, ages, tables and log lines."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml import wire
from riseml.base.errors import UsageError
from riseml.cli.output.log_lines import LogFormatter, describe_end, get_id_width
from riseml.cli.output.problem_lines import describe_error, describe_problems
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_lines, clean_text, escape_json, format_age, format_seconds
from riseml.cli.output.widths import cut_to_width, measure_width, shorten_to_width
from riseml.spec.yaml.problems import Problem, Severity
from tests.unit.cli.fake_server import end, line, make_experiment, make_job, state

NOW = datetime(2026, 8, 31, 7, 24, 46, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 🙂\t.", "plain é 日本 🙂\t."),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==", ""),
        ("\x9b31mred", "red"),
        ("\x1bPq...\x1b\\a\x1bc\x1b(Bb", "ab"),
        ("10%\r50%\r100%", "100%"),
        ("done\r", "done"),
        ("50%\r\x1b[K", "50%"),
        ("\r\r", ""),
        ("a\x07b\x00c\x7f", "a\\x07b\\x00c\\x7f"),
        ("a\nb", "a\\x0ab"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\\ud800"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_foreign_text_cannot_rewrite_the_terminal(text: str, shown: str) -> None:
    assert clean_text(text) == shown


def test_colours_are_kept_where_they_are_wanted_and_end_with_the_line() -> None:
    assert clean_text("\x1b[1;31mred\x1b[5A", colours=True) == "\x1b[1;31mred\x1b[0m"
    assert clean_text("plain\x07", colours=True) == "plain\\x07"


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b[]mHJ;0\r\n\x07\x9b\\P")))
def test_nothing_but_colours_comes_through(text: str) -> None:
    assert clean_text(text).replace("\t", "").isprintable() or not re.search(
        r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", clean_text(text)
    )
    left = re.sub(r"\x1b\[[0-9;:]*m", "", clean_text(text, colours=True))
    assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]", left)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 seconds"),
        (1.9, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7200, "2 hours"),
        (2e5, "2 days"),
    ],
)
def test_lengths_of_time(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_ages() -> None:
    assert format_age("2026-08-31T07:23:46Z", NOW) == "60 seconds"
    assert format_age("2026-08-31T07:23:46.123456Z", NOW) == "59 seconds"
    assert format_age(None, NOW) == "-"


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


@given(st.text(), st.integers(0, 30))
def test_cutting_keeps_the_width(text: str, width: int) -> None:
    cut = cut_to_width(text, width)
    assert text.startswith(cut)
    assert measure_width(cut) <= width
    assert measure_width(shorten_to_width(text, width + 1)) <= width + 1


def test_a_table_without_rows_has_its_titles() -> None:
    assert build_table(WIDE, []) == ["ID  PROJECT  MEM-Used / Total"]
    assert build_table(WIDE, [], Style(width=5))


def _log(*entries: wire.StateEntry | wire.LineEntry, colour: bool = False) -> list[str]:
    formatter = LogFormatter(colour)
    return [shown for entry in entries for shown in formatter.format_entry(entry)]


def test_the_log_looks_as_riseml_printed_it() -> None:
    assert _log(
        state("BUILDING", job="4", reason="SUBMITTED"),
        state("STARTING", job="4.build", reason="PREPARE", sentence="Preparing environment"),
        line("Building your image", job="4.build"),
        state("FINISHED", job="4.build", reason="COMPLETED", sentence="Completed", exit_code=0),
        line("step 1", job="4.worker.1"),
    ) == [
        "4             | [2026-08-31T07:23:46Z] --> BUILDING",
        "4.build       | [2026-08-31T07:23:46Z] --> STARTING",
        "4.build       |                        Reason: PREPARE",
        "4.build       |                        Message: Preparing environment",
        "4.build       | [2026-08-31T07:23:46Z] Building your image",
        "4.build       | [2026-08-31T07:23:46Z] --> FINISHED",
        "4.build       |                        Reason: COMPLETED",
        "4.build       |                        Exit Code: 0",
        "4.worker.1    | [2026-08-31T07:23:46Z] step 1",
    ]


def test_a_state_that_explains_itself_is_one_line() -> None:
    for reason in ("SUBMITTED", "RUNNING", "PLACED", "WAITING_FOR_IMAGE"):
        assert len(_log(state("PENDING", reason=reason))) == 1
    assert len(_log(state("PENDING", reason="PLACED", message="one\ntwo"))) == 3


def test_a_forged_prefix_stays_in_its_line() -> None:
    shown = _log(line("x\n4.master | [now] forged\r4.ps.1 | forged too"))
    assert len(shown) == 1
    assert shown[0].startswith("4.master      | [2026-08-31T07:23:46Z] ")


def test_each_job_keeps_its_colour() -> None:
    shown = _log(line("a", job="4.ps.1"), line("b", job="4.master"), line("c", job="4.ps.1"), colour=True)
    colours = [re.findall(r"^\x1b\[\d+m", one) for one in shown]
    assert all(colours)
    assert colours[0] == colours[2] != colours[1]


def test_the_width_is_fixed_unless_an_id_is_longer() -> None:
    assert get_id_width(make_experiment()) == 13
    member = make_experiment("144.12", jobs=[make_job("144.12.worker.10")])
    assert get_id_width(make_experiment("144", jobs=[], experiments=[member])) == 16


@pytest.mark.parametrize(
    ("entry", "first"),
    [
        (end(), "Experiment 4 FINISHED after 2 minutes"),
        (
            end("FAILED", exit_code=3, cause="worker.1", message="exit code 3"),
            "Experiment 4 FAILED after 2 minutes: 4.worker.1: exit code 3",
        ),
        (
            end("FAILED", exit_code=7, cause="build", message="step 2 failed\nmore"),
            "Experiment 4 FAILED after 2 minutes: 4.build: step 2 failed",
        ),
        (
            end("KILLED", exit_code=None, message="Killed by a user"),
            "Experiment 4 KILLED after 2 minutes: Killed by a user",
        ),
    ],
)
def test_the_last_line_says_how_the_experiment_ended(entry: wire.EndEntry, first: str) -> None:
    experiment = make_experiment(ended_at="2026-08-31T07:25:46Z")
    assert describe_end(entry, experiment) == [first, "Output: /output/paul/ai-toaster/4"]


@pytest.mark.parametrize("state", ["FINISHED", "FAILED"])
def test_a_set_says_what_became_of_its_members(state: str) -> None:
    experiment = make_experiment(type="set", ended_at="2026-08-31T07:25:46Z")
    entry = end(state, exit_code=None, message="1 of 2 finished, 1 failed")
    assert describe_end(entry, experiment)[0] == f"Experiment 4 {state} after 2 minutes: 1 of 2 finished, 1 failed"


def test_a_failed_set_says_why_its_members_failed() -> None:
    texts = ["exit code 1", "Out of memory", "exit code 1\nmore", "a", "b"]
    members = [make_experiment(f"4.{at}", state="FAILED", message=text) for at, text in enumerate(texts, 1)]
    experiment = make_experiment(
        type="set",
        ended_at="2026-08-31T07:25:46Z",
        experiments=[*members, make_experiment("4.6", state="FINISHED")],
        cause="1.train",
        exit_code=1,
        last_lines=["a"],
    )
    entry = end("FAILED", exit_code=1, cause="1.train", message="0 of 6 finished, 5 failed")
    assert describe_end(entry, experiment) == [
        "Experiment 4 FAILED after 2 minutes: 0 of 6 finished, 5 failed",
        "Failed: 4.1 and 1 other: exit code 1",
        "Failed: 4.2: Out of memory",
        "Failed: 4.4: a",
        "Failed: 1 more, for other reasons",
        "Last lines of 4.1.train:",
        "  a",
        "Output: /output/paul/ai-toaster/4",
    ]


def test_the_last_lines_and_the_advice_come_before_the_output() -> None:
    experiment = make_experiment(cause="master", last_lines=["a", "50%\r100%"], advice="do\x1b[2J this")
    assert describe_end(end("FAILED", exit_code=3, cause="master"), experiment)[1:] == [
        "Last lines of 4.master:",
        "  a",
        "  100%",
        "Advice: do this",
        "Output: /output/paul/ai-toaster/4",
    ]


def test_a_problem_shows_its_line_and_a_caret() -> None:
    source = "project: a\ntrain:\n  rum: x\n"
    problem = Problem("riseml.yml", 3, 3, "train.rum", "unknown key", "did you mean `run`?")
    assert list(describe_problems([problem], "riseml.yml", source)) == [
        "riseml.yml:3:3: error: train.rum: unknown key",
        "    3 |   rum: x",
        "      |   ^",
        "  hint: did you mean `run`?",
    ]


@pytest.mark.parametrize(("line_number", "column"), [(0, 1), (9, 1), (1, 500), (1, 1), (2, 3000)])
def test_any_position_can_be_shown(line_number: int, column: int) -> None:
    problem = Problem("f", line_number, column, "", "what", "", Severity.WARNING)
    shown = list(describe_problems([problem], "f", "a\tb\x1b[31m\n" + "x" * 4000))
    assert all(len(one) < 100 for one in shown)
    assert "\x1b" not in "".join(shown)


def test_a_problem_of_an_option_has_no_line() -> None:
    problem = Problem("-p lr=x", 1, 1, "train.parameters.lr", "no number", "")
    assert list(describe_problems([problem], "riseml.yml", "project: a")) == [
        "-p lr=x: error: train.parameters.lr: no number"
    ]


def test_a_caret_stands_below_its_character_also_after_wide_ones() -> None:
    problem = Problem("riseml.yml", 1, 6, "", "no such key", "")
    _, quoted, caret = describe_problems([problem], "riseml.yml", "日本語: x")
    assert measure_width(quoted[: quoted.index("x")]) == caret.index("^")


def test_an_error_is_one_line_and_its_hint() -> None:
    assert describe_error(UsageError("what\nand more", "do\x1b[2J this")) == [
        "error: what",
        "  and more",
        "hint: do this",
    ]


def test_a_batch_of_lines_looks_like_single_lines() -> None:
    said = ["plain", "", "a \x1b[31mred\x1b[0m one", "50 %\r100 %", "\u2028", "\u202e", "é", "two  blanks "]
    moments = [f"2026-08-31T07:23:{number:02d}.5Z" for number in range(len(said))]
    for colour in (False, True):
        for texts in (said, ["plain", "words"]):
            alone: list[wire.LineEntry] = [
                {"type": "line", "cursor": "", "id": "4.master", "time": at, "stream": "stdout", "text": text}
                for at, text in zip(moments, texts, strict=False)
            ]
            body = "".join(f"{entry['time']} {entry['text']}\n" for entry in alone)
            batch: wire.LinesEntry = {"type": "lines", "cursor": "", "id": "4.master", "stream": "stdout", "text": body}
            formatter = LogFormatter(colour)
            assert LogFormatter(colour).format_entry(batch) == [
                shown for entry in alone for shown in formatter.format_entry(entry)
            ]


def test_printable_characters_need_no_cleaning() -> None:
    assert all(clean_text(chr(code)) == chr(code) for code in range(0x110000) if chr(code).isprintable())


@pytest.mark.parametrize("odd", ["\x1b[2J", "\x9b2J", "\x9d0;title\x9c", "\u202e", "\x07", "\n", "\ud800"])
def test_the_printer_cleans_what_a_view_has_missed(odd: str) -> None:
    fine = ["plain \t日本", "\x1b[1;31mred\x1b[0m"]
    assert clean_lines(fine, colours=True) is fine
    for colours in (False, True):
        (_, cleaned) = clean_lines(["plain", f"a{odd}b"], colours=colours)
        assert cleaned.isprintable()
    assert clean_lines(fine, colours=False) == ["plain \t日本", "red"]
    assert clean_lines([f"\x1b[1mbold\x1b[0m{odd}"], colours=True)[0].startswith("\x1b[1mbold\x1b[0m")


def test_json_is_the_same_without_characters_that_rewrite_a_terminal() -> None:
    value = {"\x9b2J": ["\x1b]0;t\x07", "\x7f\u202e\u2028 é 日本\n", "\ud800"]}
    text = escape_json(json.dumps(value, ensure_ascii=False))
    assert text.isprintable()
    assert "é 日本" in text
    assert json.loads(text) == value
