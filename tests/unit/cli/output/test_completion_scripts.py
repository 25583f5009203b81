"""The scripts of the shells: which words fit where."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Riseml


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["kil"], ["kill"]),
        (["pool", "dr"], ["drain"]),
        (["train", "--ex"], ["--executor"]),
        (["train", "--executor", "p"], ["process"]),
        (["--debug", "server", "st"], ["status", "start", "stop"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["logs", "4."], ["4.all"]),
        (["kill", "-f", "4."], ["4.running"]),
        (["init", "x"], []),
        (["cp", "4."], ["4.running"]),
        (["cp", "./su"], ["FILES"]),
        (["ls", ""], ["FILES"]),
        (["cat", "su"], ["FILES"]),
        (["import", "tfj"], ["FILES"]),
        (["checkout", "4"], ["4all"]),
        (["checkout", "4", "su"], ["FILES"]),
        (["export", "./su"], ["FILES"]),
        (["export", "4", "--sl"], ["--slurm"]),
        (["rerun", "./su"], ["FILES"]),
        (["validate", "-f", "su"], ["FILES"]),
        (["plot", "4", "--svg", "su"], ["FILES"]),
        (["pool", "add", "--identity", "su"], ["FILES"]),
        (["pool", "add", "--tls", "su"], ["FILES"]),
        (["logs", "su"], []),
    ],
    ids=lambda words: " ".join(words),
)
def test_bash_completes(riseml: Riseml, tmp_path: Path, line: list[str], expected: list[str]) -> None:
    script = riseml("completion", "bash").out
    fake = tmp_path / "riseml"
    fake.write_text('#!/bin/sh\ncase "$1" in [0-9]*) echo "$1$_RISEML_NAMES" ;; esac\n')
    fake.chmod(0o755)
    words = " ".join(f"'{word}'" for word in [str(fake), *line])
    script += "compopt() { COMPREPLY=(FILES); }\n"  # where a file fits, bash itself completes
    program = f'{script}\nCOMP_WORDS=({words}) COMP_CWORD={len(line)}\n_riseml "{fake}" "{line[-1]}"\n'
    done = subprocess.run(
        ["bash", "--norc", "-c", program + 'printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.split(), done.stderr) == (expected, "")
