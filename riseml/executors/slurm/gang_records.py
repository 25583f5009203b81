"""The files in which a gang's supervisor records the state of the gang, and the files of roles that it reads.

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

import json
import os
import re
import select
from typing import Any

STOPPED = "Slurm ended the job"
UNSAID = STOPPED + ": a scancel, or a preemption"
_CAUSES = (
    ("DUE TO PREEMPTION", "another job preempted it"),
    ("DUE TO JOB REQUEUE", "it was requeued in Slurm"),
    ("DUE TO TIME LIMIT", "its time limit was reached"),
    ("DUE TO NODE FAILURE", "a node failed"),
)
"""The lines that Slurm writes into the output of a job or step before it ends it, and their meaning."""

_MARK = " CANCELLED AT "  # occurs in each of these lines

_MEMORY = re.compile(
    r"^(slurmstepd|srun)\b.*(oom[-_ ]kill|exceeded (job )?memory limit|task \d+: out of memory$)",
    re.IGNORECASE | re.MULTILINE,
)
"""Slurm's line when a step exceeded its memory: the cgroup killed a process, or Slurm killed the step."""

_OUTPUT_READ = 20000  # bytes to read from the end of such an output
_PAUSE = 2.0  # seconds between two attempts to write the last record


def write_record(folder: str, name: str, content: "dict[str, Any]") -> None:
    """Replace a record; on a full disk the next change tries again, and the last one (`done`) until it succeeds.

    Meanwhile the claim shows that the supervisor lives, so that the server does not end its job.
    """
    path = os.path.join(folder, name)
    while True:
        try:
            with open(path + ".new", "w") as file:
                json.dump(content, file)
            os.rename(path + ".new", path)
        except FileNotFoundError:  # the server has removed the folder
            return
        except OSError:
            if "done" not in content:
                return
            touch_record(folder, "claim")
            select.select([], [], [], _PAUSE)
        else:
            return


def touch_record(folder: str, name: str) -> None:
    """Update the modification time of a record; do not create it again when the server has removed it."""
    try:
        os.utime(os.path.join(folder, name))
    except OSError:
        return


def read_exit(folder: str, role: str) -> "dict[str, Any] | None":
    """Return the end of a role as its wrapper recorded it; None: there is no record."""
    try:
        with open(os.path.join(folder, role + ".exit")) as file:
            return json.load(file)  # type: ignore[no-any-return]  # JSON of the wrapper
    except (OSError, ValueError):
        return None


def read_orders(folder: str, start: int) -> "tuple[list[dict[str, Any]], int]":
    """Return what the server has ordered from this byte on, and where the next order begins.

    NFS checks for changes when a file is opened.
    """
    try:
        with open(os.path.join(folder, "orders"), "rb") as file:
            file.seek(start)
            data = file.read()
    except OSError:
        return [], start
    whole = data[: data.rfind(b"\n") + 1]
    orders = [order for line in whole.split(b"\n") for order in _read_order(line)]
    return orders, start + len(whole)


def _read_order(line: bytes) -> "list[dict[str, Any]]":
    """Return the order in a line; nothing when a full disk has truncated the line: the server repeats the order."""
    try:
        order = json.loads(line.decode())
    except ValueError:
        return []
    return [order] if isinstance(order, dict) else []


def find_stop_cause(folder: str) -> str:
    """Return why Slurm ends the job or one of its steps; empty when it has not said so.

    A step that Slurm cancels because of its memory caused its own end. The server may have removed the folder: behind a
    network partition, that is the only sign that the supervisor gets.
    """
    stop_lines = []
    unsaid = ""
    for name in _list_names(folder):
        if name == "batch.log" or name.endswith(".srun"):
            text = _read_end(os.path.join(folder, name))
            lines = [line for line in text.split("\n") if "*** " in line and _MARK in line]
            stop_lines += lines
            if lines and not _MEMORY.search(text):
                unsaid = UNSAID
    for words, meaning in _CAUSES:
        if any(words in line for line in stop_lines):
            return STOPPED + ": " + meaning
    return unsaid


def ran_out_of_memory(folder: str, role: str) -> bool:
    """Return True when Slurm has written that a process of a role was killed because of the role's memory."""
    return bool(_MEMORY.search(_read_end(os.path.join(folder, role + ".srun"))))


def _list_names(folder: str) -> "list[str]":
    """Return the names in a folder; none when it is gone."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read_end(path: str) -> str:
    """Return the end of an output of Slurm; empty when it is gone."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _OUTPUT_READ))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def read_last_words(folder: str, role: str) -> str:
    """Return what srun said last of a role."""
    try:
        with open(os.path.join(folder, role + ".srun"), "rb") as file:
            lines = file.read()[-2000:].decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return " ".join(line.strip() for line in lines[-4:]).strip()[:500]
