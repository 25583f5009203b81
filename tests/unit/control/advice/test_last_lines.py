"""The last lines of failed jobs: the line with the cause is among them, whatever follows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.control.advice.last_lines import choose_last_lines, drop_frames, is_exception

TABLE = Path(__file__).with_name("last_lines.txt")


def _read_cases() -> list[tuple[str, list[str], list[str]]]:
    cases = []
    for block in TABLE.read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, text = block.partition("\n")
        printed, _, shown = text.partition("\n>>>>>\n")
        cases.append((title, printed.split("\n"), shown.rstrip("\n").split("\n")))
    return cases


CASES = _read_cases()


@pytest.mark.parametrize(("printed", "shown"), [case[1:] for case in CASES], ids=[title for title, *_ in CASES])
def test_the_line_with_the_cause_is_shown(printed: list[str], shown: list[str]) -> None:
    assert list(choose_last_lines(printed)) == shown
    assert len(shown) <= 10


def test_an_error_without_a_usual_name_counts_when_it_ends_a_traceback() -> None:
    traceback = ["Traceback (most recent call last):", '  File "x.py", line 1, in <module>', "queue.Empty"]
    assert "queue.Empty" in choose_last_lines([*traceback, *[""] * 20, *["frame #1: x"] * 20])


def test_an_error_of_a_launcher_is_shown_when_no_other_one_was_printed() -> None:
    error = "subprocess.CalledProcessError: Command '['python', 'x.py']' returned non-zero exit status 1."
    assert error in choose_last_lines([error, *["frame #1: x"] * 20])


def test_a_prefix_of_each_line_is_no_hindrance() -> None:
    for prefix in ("[rank3]: ", "[1]<stderr>:", "[0] ", "(worker pid=7) ", "\x1b[36m(worker pid=7)\x1b[0m "):
        lines = [
            prefix + line for line in ("Traceback (most recent call last):", "  File x", "app.Stop: no", *[""] * 15)
        ]
        assert prefix + "app.Stop: no" in choose_last_lines(lines), prefix


def test_lines_without_an_error_are_the_last_ten() -> None:
    lines = [f"step {number}" for number in range(20)]
    assert list(choose_last_lines([*lines, "", ""])) == lines[10:]
    assert choose_last_lines([]) == ()
    assert choose_last_lines(["", " "]) == ()


def test_frames_say_nothing_to_the_advice() -> None:
    lines = [
        "ModuleNotFoundError: No module named 'cv2'",
        "",
        "  [bt] (1) /usr/lib/x.so(+0x1) [0x7f]",
        "frame #12: a + 1",
    ]
    assert drop_frames(lines) == lines[:1]


@pytest.mark.parametrize(
    "line", ["ValueError: no", "[rank0]: a.b.CError", "KeyboardInterrupt", "RayTaskError(OSError): x"]
)
def test_the_end_of_a_traceback_is_an_exception(line: str) -> None:
    assert is_exception(line)


@pytest.mark.parametrize("line", ["error: no", "app.Failed: no", "2 Errors", "the last Error", ""])
def test_another_line_is_no_exception(line: str) -> None:
    assert not is_exception(line)


@pytest.mark.parametrize(
    "line", ["[" * 400, " " * 400, "a." * 200, "\x1b[0m" * 100, "  | " * 100, "(a pid=1" * 50, "x[0x" * 100]
)
def test_hostile_lines_take_no_time(line: str) -> None:
    assert len(choose_last_lines([line] * 400)) <= 10
