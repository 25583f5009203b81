"""Run each training that hangs, and write the table of what the server said of it."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from riseml.server.clock import now
from tests.real.diagnosis.test_hangs import find_diagnosis
from tests.support.hangs import PATIENCE, PLAIN_HANGS, TENSORFLOW_HANGS, TORCH_HANGS, Hang
from tests.support.rig import Rig

PAGE = Path(__file__).parents[3] / "docs" / "diagnosis.md"
HEAD = """# What the server says of a run that hangs

Each row is a small training that really hangs for this cause, run on the {date} by `make diagnose`, one after another,
on a machine with {cores} cores. No user asks: the server notices the stall and diagnoses it by itself
([stuck.md](stuck.md)). The patience is {patience} here (`stall: {{after: {patience}}}`), to save minutes; *seconds* is
the time from the end of that patience until the sentence is there. `process`: without Docker.

{right} of {all} causes are named right, with the rank.

| cause | jobs | seconds | what the server says |
|---|---|---|---|
"""


@dataclass(frozen=True)
class NamedHang:
    """What came of one hang."""

    hang: Hang
    executor: str
    seconds: float | None  # None: it was not named
    sentence: str

    def __str__(self) -> str:
        seconds = "-" if self.seconds is None else f"{self.seconds:.0f}"
        return f"| {self.hang.name} | {self.executor} | {seconds} | `{self.sentence}` |"


def run_hang(rig: Rig, hang: Hang) -> NamedHang:
    """Run one training until the server has named its cause."""
    executor = "process" if rig.engine is None else "docker"
    name = str(rig.submit(hang.make_config(contained=rig.engine is not None), {"train.py": hang.program})["id"])
    try:
        shown = rig.wait(f"{hang.name} is named", lambda: find_diagnosis(rig, name, hang))
    except AssertionError:
        said = rig.experiment(name)["diagnosis"]
        return NamedHang(hang, executor, None, "nothing" if said is None else said["sentence"])
    finally:
        rig.post(f"/v1/experiments/{name}/kill")
        rig.wait_closed(name)
    diagnosis = shown["diagnosis"]
    begun = datetime.fromisoformat(next(remark["since"] for remark in shown["remarks"] if remark["kind"] == "stuck"))
    looked = datetime.fromisoformat(diagnosis["time"])
    seconds = (looked - begun).total_seconds() + diagnosis["seconds"] - float(PATIENCE.removesuffix("s"))
    return NamedHang(hang, executor, max(0.0, seconds), diagnosis["sentence"])


def run_all(words: list[str]) -> list[NamedHang]:
    """Run the trainings whose names contain one of these words; all without any."""
    rows: list[NamedHang] = []
    for engine in (None, os.environ["DOCKER_HOST"]):
        hangs = PLAIN_HANGS + TORCH_HANGS + (() if engine is None else TENSORFLOW_HANGS)
        with tempfile.TemporaryDirectory() as folder, Rig(Path(folder) / "home", engine) as rig:
            for hang in hangs:
                if not words or any(word in hang.name for word in words):
                    rows.append(run_hang(rig, hang))
                    print(rows[-1], flush=True)
            rig.clean_up()
    return rows


def main() -> None:
    """Run them, and write the page when all of them ran."""
    rows = run_all(sys.argv[1:])
    right = sum(row.seconds is not None for row in rows)
    if not sys.argv[1:]:
        date = now().date().isoformat()
        head = HEAD.format(date=date, cores=os.cpu_count(), patience=PATIENCE, right=right, all=len(rows))
        PAGE.write_text(head + "".join(f"{row}\n" for row in rows))
    sys.exit(right != len(rows))


if __name__ == "__main__":
    main()
