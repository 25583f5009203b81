"""The lines of `run` in a real shell: in order, in one shell, and no further than the first that fails."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from riseml.frameworks.base import join_run_lines

SHELLS = [shell for shell in ("sh", "dash", "bash", "ksh") if shutil.which(shell)]

RUNS = {
    "one line": (["echo a"], 0, "a"),
    "in order": (["echo a", "echo b"], 0, "a b"),
    "one shell": (["x=1; cd /", "echo $x $PWD"], 0, "1 /"),
    "a failure": (["echo a", "exit 3", "echo b"], 3, "a"),
    "a failing command": (["(exit 4)", "echo b"], 4, ""),
    "a failing list": (["false && true", "echo b"], 1, ""),
    "the code of a list": (["(exit 5) && true", "echo b"], 5, ""),
    "inside a line": (["false\necho a", "echo b"], 1, ""),
    "a condition is not a failure": (["if false; then echo a; fi", "echo b"], 0, "b"),
    "a caught failure": (["false || true", "! false", "echo b"], 0, "b"),
    "a line goes on": (["echo a \\", "b", "echo c"], 0, "a b c"),
    "an escaped backslash does not": (["echo a\\\\", "echo b"], 0, "a\\ b"),
    "and is checked": (["false && echo a\\\\", "echo b"], 1, ""),
    "a comment": (["# a", "echo b # c", "echo d"], 0, "b d"),
    "a here-document": (["cat <<X\na\nX", "echo b"], 0, "a b"),
    "in the background": (["true &", "wait", "echo b"], 0, "b"),
    "a loop over lines": (["for i in 1 2; do", "echo $i", "done"], 0, "1 2"),
    "the last line's code": (["echo a", "false && true"], 1, "a"),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", RUNS)
def test_lines_run(shell: str, name: str) -> None:
    lines, code, shown = RUNS[name]
    done = subprocess.run([shell, "-ec", join_run_lines(lines)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (code, shown.split(), "")
