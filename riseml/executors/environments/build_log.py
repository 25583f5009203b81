"""The log of one build as the lines of the experiment that waits for it; each line once, also after a restart of the
server."""

from __future__ import annotations

import re

from riseml.base.terminal_text import plain_line
from riseml.executors.base import BuildRequest, Work, WorkReport

STEP_MARK = "--> "
"""How the line begins that names the install step which starts, in the log of a build."""

_BORING_LINE = re.compile(r" \+ |Using Python ")  # uv names every package that it installs
_LONGEST_LINE = 1 << 16  # bytes kept of a line without an end


class BuildLog:
    """Passes the log of a build on, piece by piece.

    Args:
        build: receives the lines and the progress.
        passed: lines that it received from an earlier server.
    """

    def __init__(self, build: BuildRequest, passed: int) -> None:
        self._build = build
        self._passed = passed
        self._open_line = b""  # the beginning of a line whose end has not arrived yet
        self.step = 0  # the number of the install step that runs, from 1; 0: none has begun

    def add_output(self, data: bytes) -> None:
        """Pass on the lines that are complete now."""
        *lines, open_line = (self._open_line + data).split(b"\n")
        self._open_line = open_line[-_LONGEST_LINE:]
        for line in lines:
            self._add_line(line)

    def end(self) -> None:
        """Pass on the last line, which may have no end."""
        self._add_line(self._open_line)
        self._open_line = b""

    def name_step(self) -> str:
        """Return what the build was doing, as the subject of a sentence about its failure."""
        install = self._build.image.install
        return f"install step {self.step} ({install[self.step - 1]})" if self.step else "the build of the environment"

    def _add_line(self, line: bytes) -> None:
        text = plain_line(line.decode("utf-8", "replace"))
        if not text.strip() or _BORING_LINE.match(text):
            return
        install = self._build.image.install
        if self.step < len(install) and text == plain_line(STEP_MARK + install[self.step].partition("\n")[0]):
            self.step += 1
            self._build.report(WorkReport(Work.INSTALL, install[self.step - 1], self.step, len(install)))
        if self._passed:
            self._passed -= 1
        else:
            self._build.emit(text)
