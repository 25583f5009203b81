"""Experiments for the faults: their right ending and every line of their output are known beforehand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.rig import BASE
from tests.support.waiting import DEADLINE

PRELUDE = 'echo "$RISEML_JOB $RISEML_ATTEMPT" >> "$OUTPUT_DIR/starts"\n'
"""Each start of a job writes a line into the output, so that the tests see a second start of the same attempt."""


GO = "go"
"""Name of the file in the output that jobs wait for."""


@dataclass(frozen=True, slots=True)
class Scene:
    """An experiment and the truth about it."""

    config: str  # its riseml.yml
    state: str = "FINISHED"  # the right one
    reasons: frozenset[str] = frozenset({"COMPLETED"})  # the right ones; several where the server may see either
    # by job of the last attempt; None: as many as the job has noted in the output; others must have no gap
    lines: Mapping[str, int | None] = field(default_factory=dict)
    kill: bool = False  # a user kills the experiment as soon as it runs
    attempts: int | None = 1  # None: any number
    promised: bool = True  # False: the output of an attempt that ended with its host may be lost
    files: Mapping[str, str] = field(default_factory=dict)  # of the project, beside riseml.yml
    removed: str = ""  # a job that the test removes, with its last output
    dropped: int = 0  # lines of each job that its engine may drop: it had them in memory when it was killed


def count_lines(count: int, pause: str = "0.05", end: str = "exit 0") -> str:
    """Return shell that prints numbered lines, and writes the last number into the output."""
    return (
        f"i=0; while [ $i -lt {count} ]; do echo line $RISEML_ATTEMPT $i; "
        f'echo $i > "$OUTPUT_DIR/$RISEML_JOB-$RISEML_ATTEMPT"; i=$((i+1)); sleep {pause}; done; {end}'
    )


def write_trio(script: Mapping[str, str], **keys: Any) -> str:
    """Return a riseml.yml of a master, one worker and a ps, each with its own shell; a job without any sleeps."""
    cases = "\n".join(f"{job}) {text} ;;" for job, text in script.items())
    train: dict[str, Any] = {
        "framework": "tensorflow",
        "image": BASE,
        "tensorflow": {"version": "2.21.0", "distributed": {"worker": 2, "ps": 1}},
        "resources": {"cpus": 0.1, "mem": "32MiB"},
        "stop_grace": 2,
        "finish_grace": 2,
        "run": f'{PRELUDE}case "$RISEML_JOB" in\n{cases}\n*) exec sleep 600 ;;\nesac\n',
        **keys,
    }
    return json.dumps({"project": "chaos", "train": train})


def write_solo(run: str, **keys: Any) -> str:
    """Return a riseml.yml of one job."""
    train = {
        "image": BASE,
        "resources": {"cpus": 0.1, "mem": "32MiB"},
        "stop_grace": 2,
        "run": f"{PRELUDE}{run}\n",
        **keys,
    }
    return json.dumps({"project": "chaos", "train": train})


def make_good_scene(count: int = 20, **keys: Any) -> Scene:
    """Return an experiment that finishes; a worker that the fault delays has time to print everything."""
    config = write_trio(
        {"master": count_lines(count), "worker.1": count_lines(count)}, **{"finish_grace": DEADLINE, **keys}
    )
    return Scene(config, lines={"master": count, "worker.1": count})


def make_open_scene(**keys: Any) -> Scene:
    """Return an experiment that prints until the test makes the file `GO` in its output, however late, and finishes."""
    count = count_lines(0).replace("[ $i -lt 0 ]", f'[ ! -e "$OUTPUT_DIR/{GO}" ]')
    config = write_trio({"master": count, "worker.1": count}, **{"finish_grace": DEADLINE, **keys})
    return Scene(config, lines={"master": None, "worker.1": None})


def make_large_scene(count: int = 20) -> Scene:
    """Return an experiment that finishes, with code that is kept as a layer of an image where there are images."""
    check = "wc -c < large.txt | grep -qx 3145728 && test ! -e seen && touch seen || exit 9; "
    script = {job: check + count_lines(count) for job in ("master", "worker.1")}
    lines = {"master": count, "worker.1": count}
    return Scene(write_trio(script, finish_grace=DEADLINE), lines=lines, files={"large.txt": "x" * (3 << 20)})


def make_writing_scene(count: int = 20) -> Scene:
    """Return an experiment that finishes, and whose jobs write files beside their code; riseml.yml keeps some."""
    script = {job: f"echo x >kept.pt; echo y >lost.csv; {count_lines(count)}" for job in ("master", "worker.1")}
    config = write_trio(script, finish_grace=DEADLINE, outputs=["*.pt"])
    return Scene(config, lines={"master": count, "worker.1": count})


def make_failing_scene(count: int = 20, **keys: Any) -> Scene:
    """Return an experiment whose master fails, and whose worker ignores SIGTERM."""
    deaf = f"trap '' TERM; {count_lines(10_000)}"
    config = write_trio({"master": count_lines(count, end="exit 3"), "worker.1": deaf}, **{"stop_grace": 1, **keys})
    return Scene(config, "FAILED", frozenset({"EXIT_CODE"}), {"master": count})


def make_killed_scene(**keys: Any) -> Scene:
    """Return an experiment that a user kills; its worker ignores SIGTERM."""
    endless = count_lines(10_000)
    config = write_trio({"master": endless, "worker.1": f"trap '' TERM; {endless}"}, **{"stop_grace": 1, **keys})
    return Scene(config, "KILLED", frozenset({"KILLED_BY_USER"}), kill=True)


def make_lost_scene(*reasons: str, **keys: Any) -> Scene:
    """Return an experiment that runs until the fault ends it, for one of these reasons."""
    config = write_trio({"master": count_lines(10_000), "worker.1": count_lines(10_000)}, **keys)
    return Scene(config, "FAILED", frozenset(reasons))


def make_retried_scene(count: int = 20, **keys: Any) -> Scene:
    """Return an experiment whose first attempt runs until the fault ends it, and whose second attempt finishes."""
    job = f'if [ "$RISEML_ATTEMPT" = 1 ]; then {count_lines(10_000)}; fi; {count_lines(count)}'
    config = write_trio({"master": job, "worker.1": job}, **{"retry": 1, "finish_grace": DEADLINE, **keys})
    return Scene(config, lines={"master": count, "worker.1": count}, attempts=2)


def make_signalled_scene(code: int) -> Scene:
    """Return an experiment whose jobs print some lines and end when the file `GO` appears, the master with this code.

    riseml retries it when the engine does not know the exit code.
    """
    wait = f'until [ -e "$OUTPUT_DIR/{GO}" ]; do sleep 0.05; done; exit'
    script = {
        "master": count_lines(20, "0.01", f"{wait} {code}"),
        "worker.1": count_lines(20, "0.01", f"{wait} 0"),
    }
    config = write_trio(script, retry={"max": 3, "on": ["host-lost"]})
    if code == 0:
        return Scene(config, attempts=None, promised=False)
    return Scene(config, "FAILED", frozenset({"EXIT_CODE"}), attempts=None, promised=False)
