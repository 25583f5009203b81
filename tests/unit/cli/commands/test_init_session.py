"""A user answers the questions of `init` on a terminal of 80 and of 200 columns, with and without colour."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

from tests.support.command import plain_environ
from tests.support.waiting import DEADLINE

RISEML = str(Path(sys.executable).with_name("riseml"))
PROGRAM = """\
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=0.001)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--output-dir", default="out")
print(f"loss: {parser.parse_args().momentum}")
"""
SHOWN = [
    "python train.py",
    "train.py:2 imports torch",
    "requirements.txt:1 lists packages",
    "train.py:4 3 of its arguments have defaults",
    "train.py:8 prints them",
]


class _Session:
    """A command on a terminal of some columns, and all that the terminal got."""

    def __init__(self, words: tuple[str, ...], where: Path, environ: dict[str, str], columns: int) -> None:
        self.columns = columns
        self.text = ""
        self.process: pexpect.spawn[str] = pexpect.spawn(
            RISEML, list(words), cwd=where, env=environ, dimensions=(50, columns), timeout=DEADLINE, encoding="utf-8"
        )
        self.process.logfile_read = self

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        """Do nothing: the text is there already."""

    def answer(self, question: str, text: str) -> None:
        """Wait for a question, and type an answer and Enter."""
        self.process.expect(question)
        self.process.sendline(text)

    def finish(self) -> int | None:
        """Read to the end, and return the exit code."""
        self.process.expect(pexpect.EOF)
        self.process.wait()
        return self.process.exitstatus

    def lines(self) -> list[str]:
        """Return the lines on the screen that have text."""
        screen = pyte.Screen(self.columns, 50)
        pyte.Stream(screen).feed(self.text)
        return [line.rstrip() for line in screen.display if line.strip()]


Start = Callable[..., _Session]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a command in a project of two programs."""
    project = tmp_path / "toaster"
    project.mkdir()
    (project / "train.py").write_text(PROGRAM)
    (project / "other.py").write_text("print(1)\n")
    (project / "requirements.txt").write_text("torch\n")
    started: list[_Session] = []

    def start_command(*words: str, columns: int, colour: bool) -> _Session:
        environ = plain_environ() | {"RISEML_HOME": str(tmp_path / "home"), "TERM": "xterm-256color"}
        environ |= {} if colour else {"NO_COLOR": "1"}
        environ = {name: value for name, value in environ.items() if name not in ("COLUMNS", "LINES")}
        started.append(_Session(words, project, environ, columns))
        return started[-1]

    yield start_command
    for session in started:
        session.process.close(force=True)


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("columns", [80, 200])
def test_a_user_chooses_reads_the_findings_and_says_yes(start: Start, columns: int, *, colour: bool) -> None:
    session = start("init", columns=columns, colour=colour)
    session.answer("Number or path", "1")
    session.answer(r"Write riseml\.yml\?", "")
    assert session.finish() == 0
    lines = session.lines()
    assert lines[:3] == ["Which program does riseml run?", "  1  train.py", "  2  other.py"]
    for part in SHOWN:
        assert any(part in line for line in lines), (part, lines)
    (row,) = [line for line in lines if "imports torch" in line]
    assert ("pytorch" in row) == (columns == 200), "the reason is beside the value where there is room"
    assert lines[-1].endswith("`riseml train` runs it.")
    assert ("\x1b[1m" in session.text) == colour
    session = start("validate", columns=columns, colour=colour)
    session.process.expect("riseml.yml is valid: project toaster, pytorch, 1 job")


def test_a_no_writes_nothing_and_names_another_way(start: Start, tmp_path: Path) -> None:
    session = start("init", "--script", "train.py", columns=80, colour=False)
    session.answer(r"Write riseml\.yml\?", "n")
    assert session.finish() == 4
    assert session.lines()[-2:] == [
        "error: nothing was written",
        "hint: `riseml init --framework plain` writes a starter file without a program",
    ]
    assert not (tmp_path / "toaster" / "riseml.yml").exists()


def test_an_earlier_file_is_shown_as_a_difference_and_converted_on_a_yes(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "toaster" / "riseml.yml"
    file.write_text("deploy:  # mine\n  image: a\n  run: python t.py\n")
    session = start("init", "--convert", columns=80, colour=True)
    session.answer(r"Write riseml\.yml\?", "y")
    session.process.expect("the earlier text is in riseml.yml.old")
    assert session.finish() == 0
    assert "\x1b[31m-deploy:  # mine\x1b[0m" in session.text
    assert file.read_text() == "project: toaster\ntrain:  # mine\n  image: a\n  run: python t.py\n"
