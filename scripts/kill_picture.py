"""Make docs/kill.svg from a real run: `riseml train`, `kill -9` of the server, the training goes on, and its curve.

Two terminals are recorded: what a user types there, and what the commands write. Pauses are shortened; the path of the
temporary home is shown as `~/.riseml`, and the user as `you`. The jobs run as processes of this machine.

Usage: .venv/bin/python -m scripts.kill_picture [FILE]
"""

from __future__ import annotations

import getpass
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from scripts.moving_picture import Frame, draw_frames, shorten_pauses
from tests.support.screen import Screen
from tests.support.terminal import Terminal, open_terminal

ROOT = Path(__file__).resolve().parents[1]
SHELL = ["bash", "--norc", "--noediting", "-i"]
COLUMNS = 100
RULE = "\x1b[0;2m" + "─" * COLUMNS
UPPER = 24  # rows of the terminal of `riseml train`
LOWER = 4  # rows of the one of `kill`
TITLE = "riseml train, kill -9 of its server, the training goes on, and the curve of its metric"
JOBS = ("leader", "helper.1", "helper.2")
CONFIG = """\
project: hills
train:
  image: python:3.11
  resources: {cpus: 0.1, mem: 64MiB}
  roles:
    leader: {run: python descend.py}
    helper: {run: python descend.py, count: 2}
"""
PROGRAM = """\
import os, random, time
import riseml

random.seed(os.environ["RISEML_JOB"])
x = 5.0
for step in range(1, 13):  # gradient descent on x * x, with noise
    x -= 0.15 * (2 * x + random.uniform(-0.5, 0.5))
    print(f"step {step} of 12, loss {x * x:.4f}", flush=True)
    riseml.report(step=step, loss=x * x)
    time.sleep(1)
"""


_RUN = re.compile(r"\x1b\[0;?([\d;]*)m([^\x1b]*)")


class Recorder:
    """Keeps what both terminals show, at each change.

    Args:
        upper: the terminal of `riseml train`.
        lower: the one of `kill`.
        replaced: texts of this machine, and what the picture shows instead.
    """

    def __init__(self, upper: Terminal, lower: Terminal, replaced: Mapping[str, str]) -> None:
        self.frames: list[Frame] = []
        self._upper = upper
        self._lower = lower
        self._replaced = replaced
        self._begin = time.monotonic()

    def type_line(self, terminal: Terminal, line: str) -> None:
        """Type a line at the prompt, and show it before it runs."""
        terminal.press(line)
        self.wait_for(terminal, line)
        terminal.press("\n")

    def wait_for(self, terminal: Terminal, text: str, count: int = 1) -> None:
        """Record until the terminal shows a text so often."""

        def look(screen: Screen) -> bool:
            self._note()
            return sum(text in line for line in screen.lines()) >= count

        terminal.wait_for(text, look)

    def wait_for_prompt(self, terminal: Terminal) -> None:
        """Record until the command has ended."""

        def look(screen: Screen) -> bool:
            self._note()
            return screen.lines()[-1:] == ["$"]

        terminal.wait_for("the prompt", look)

    def _note(self) -> None:
        rows = (*self._choose_rows(self._upper, UPPER), RULE, *self._choose_rows(self._lower, LOWER))
        self.frames.append(Frame(time.monotonic() - self._begin, rows))

    def _choose_rows(self, terminal: Terminal, count: int) -> list[str]:
        """Return the last rows of a terminal, as text with colours, and without what belongs to this machine."""
        rows = [self._clean(row) for row in terminal.screen.coloured_lines()[-count:]]
        return rows + [""] * (count - len(rows))

    def _clean(self, row: str) -> str:
        text = ""
        for style, words in _RUN.findall(row):
            for former, substitute in self._replaced.items():
                words = words.replace(former, substitute)
            text += f"\x1b[0;{style}m{words}" if style else f"\x1b[0m{words}"
        return text


def main() -> None:
    """Record the run, and write the picture."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs/kill.svg").absolute()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "hills")
        folder.mkdir()
        (folder / "riseml.yml").write_text(CONFIG)
        (folder / "descend.py").write_text(PROGRAM)
        environ = {
            **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
            "RISEML_HOME": f"{name}/home",
            "RISEML_EXECUTOR": "process",
            "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "FORCE_COLOR": "1",
            "PS1": "$ ",
        }
        try:
            frames = _record(folder, environ, {f"{name}/home": "~/.riseml", f"/{getpass.getuser()}/": "/you/"})
        finally:
            subprocess.run(["riseml", "server", "stop"], env=environ, capture_output=True, check=False)
    shorter = shorten_pauses(frames, longest=1.2, shortest=0.12)
    target.write_text(draw_frames(shorter, COLUMNS, TITLE, last=4))
    print(f"{target}: {len(shorter)} frames, {target.stat().st_size / 1000:.0f} kB")


def _record(folder: Path, environ: Mapping[str, str], replaced: Mapping[str, str]) -> list[Frame]:
    with (
        open_terminal(SHELL, folder, environ, (COLUMNS, UPPER)) as upper,
        open_terminal(SHELL, folder, environ, (COLUMNS, LOWER)) as lower,
    ):
        recorder = Recorder(upper, lower, replaced)
        recorder.wait_for_prompt(upper)
        recorder.wait_for_prompt(lower)
        recorder.type_line(upper, "riseml train")
        recorder.wait_for(upper, "step 4 of 12", len(JOBS))
        answer = subprocess.run(["riseml", "server", "status", "--json"], env=environ, capture_output=True, check=True)
        recorder.type_line(lower, "riseml server status | head -1")
        recorder.wait_for(lower, "since")
        recorder.wait_for_prompt(lower)
        recorder.type_line(lower, f"kill -9 {json.loads(answer.stdout)['pid']}")
        recorder.wait_for(upper, "Lost the riseml server")
        recorder.wait_for_prompt(upper)
        recorder.type_line(upper, "riseml plot 1 loss")
        recorder.wait_for_prompt(upper)
        return recorder.frames


if __name__ == "__main__":
    main()
