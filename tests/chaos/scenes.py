"""What runs while something is harmed: experiments whose right ending, and whose every line, is known beforehand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.rig import BASE

PRELUDE = 'echo "$RISEML_JOB $RISEML_ATTEMPT" >> "$OUTPUT_DIR/starts"\n'
"""Each start of each job leaves a line in the output, so that a second start of the same attempt is seen."""


@dataclass(frozen=True, slots=True)
class Scene:
    """An experiment and the truth about it.

    `lines` are how many numbered lines a job of the last attempt prints before it ends by itself; every other job's
    lines must have no gap. `kill`: a user kills it as soon as it runs. `reasons` are the right ones: where the harm may
    be seen in two ways, both. `promised` False: what an attempt printed that was cut off with its host may be lost.
    `removed`: a job that somebody removes, and with it what it has just printed.
    """

    config: str
    state: str = "FINISHED"
    reasons: frozenset[str] = frozenset({"COMPLETED"})
    lines: Mapping[str, int] = field(default_factory=dict)
    kill: bool = False
    attempts: int | None = 1
    promised: bool = True
    removed: str = ""


def counting(count: int, pause: str = "0.05", end: str = "exit 0") -> str:
    """Shell that prints numbered lines, and notes beside them how far it came."""
    return (
        f"i=0; while [ $i -lt {count} ]; do echo line $RISEML_ATTEMPT $i; "
        f'echo $i > "$OUTPUT_DIR/$RISEML_JOB-$RISEML_ATTEMPT"; i=$((i+1)); sleep {pause}; done; {end}'
    )


def trio(script: Mapping[str, str], **keys: Any) -> str:
    """A riseml.yml of a master, one worker and a ps, each with its own shell; who has none sleeps."""
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


def solo(run: str, **keys: Any) -> str:
    """A riseml.yml of one job."""
    train = {
        "image": BASE,
        "resources": {"cpus": 0.1, "mem": "32MiB"},
        "stop_grace": 2,
        "run": f"{PRELUDE}{run}\n",
        **keys,
    }
    return json.dumps({"project": "chaos", "train": train})


def good(count: int = 20, **keys: Any) -> Scene:
    """It ends well. A worker that the harm made late has the time to say everything."""
    config = trio({"master": counting(count), "worker.1": counting(count)}, **{"finish_grace": 60, **keys})
    return Scene(config, lines={"master": count, "worker.1": count})


def bad(count: int = 20, **keys: Any) -> Scene:
    """Its master fails; one of the others hears no SIGTERM."""
    deaf = f"trap '' TERM; {counting(10_000)}"
    config = trio({"master": counting(count, end="exit 3"), "worker.1": deaf}, **{"stop_grace": 1, **keys})
    return Scene(config, "FAILED", frozenset({"EXIT_CODE"}), {"master": count})


def killed(**keys: Any) -> Scene:
    """A user kills it."""
    endless = counting(10_000)
    config = trio({"master": endless, "worker.1": f"trap '' TERM; {endless}"}, **{"stop_grace": 1, **keys})
    return Scene(config, "KILLED", frozenset({"KILLED_BY_USER"}), kill=True)


def lost(*reasons: str, **keys: Any) -> Scene:
    """It runs until the harm ends it."""
    config = trio({"master": counting(10_000), "worker.1": counting(10_000)}, **keys)
    return Scene(config, "FAILED", frozenset(reasons))


def again(count: int = 20, **keys: Any) -> Scene:
    """Its first attempt runs until the harm ends it; the second one ends well."""
    job = f'if [ "$RISEML_ATTEMPT" = 1 ]; then {counting(10_000)}; fi; {counting(count)}'
    config = trio({"master": job, "worker.1": job}, **{"retry": 1, **keys})
    return Scene(config, lines={"master": count, "worker.1": count}, attempts=2)


GO = "go"
"""The file in the output that jobs wait for."""


def on_call(code: int) -> Scene:
    """Its jobs print some lines, and end at once when they are told to; the master with this code. They are tried again
    when nobody knows how they ended.
    """
    wait = f'until [ -e "$OUTPUT_DIR/{GO}" ]; do sleep 0.01; done; exit'
    script = {"master": counting(20, "0.01", f"{wait} {code}"), "worker.1": counting(20, "0.01", f"{wait} 0")}
    config = trio(script, retry={"max": 3, "on": ["host-lost"]})
    if code == 0:
        return Scene(config, attempts=None, promised=False)
    return Scene(config, "FAILED", frozenset({"EXIT_CODE"}), attempts=None, promised=False)
