"""`riseml train` of projects that change, with a server that is killed and a store that is damaged."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from tests.support.command import run_riseml
from tests.support.rig import Rig, single

SHOW = "find . -type f -printf '%P %m ' -exec sha256sum {} + | sort | sha256sum; readlink link; echo mine > data/0.bin"


def make_project(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    for number in range(40):
        (folder / "data" / f"{number}.bin").write_bytes(os.urandom(2_000_000 if number == 7 else 1_000))
    (folder / "f\u00fcr J\udcfcrgen").write_bytes(b"text")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("data/7.bin")
    (folder / "riseml.yml").write_text(single(SHOW))
    return folder


def train(rig: Rig, project: Path) -> tuple[int, str]:
    """Train to the end, and return the exit code with what the job has seen."""
    done = run_riseml(["train"], project, rig.environ())
    return done.returncode, "\n".join(re.findall(r"\| ([0-9a-f]{64}|data/.*)", done.stdout)) or done.stderr


def test_a_job_sees_the_project_after_each_trouble(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    with Rig(tmp_path / "home", None, RISEML_EXECUTOR="process", RISEML_FAULT="P25") as rig:
        code, shown = train(rig, project)
        assert (code, rig.process and rig.process.wait()) == (5, -signal.SIGKILL), shown
        for fault in ("P26", ""):
            rig.environment["RISEML_FAULT"] = fault
            rig.start()
            code, shown = train(rig, project)
        assert (code, shown.splitlines()[1:]) == (0, ["data/7.bin"]), shown
        packs = list((rig.home / "snapshots" / "contents").glob("*.pack"))
        stored = sum(path.stat().st_size for path in packs)
        assert train(rig, project) == (0, shown)
        (project / "data" / "0.bin").write_bytes(b"changed")
        code, changed = train(rig, project)
        assert code == 0
        assert changed != shown
        grown = sum(path.stat().st_size for path in (rig.home / "snapshots" / "contents").glob("*.pack")) - stored
        assert 0 < grown < 1_000, "only the changed file is stored again"
        for path in packs:
            data = path.read_bytes()
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        assert train(rig, project)[0] == 1
        assert "run `riseml train` again" in rig.get("/v1/experiments/4")["message"]
        assert train(rig, project) == (0, changed), "the command sends the damaged file again"
        rig.clean_up()
