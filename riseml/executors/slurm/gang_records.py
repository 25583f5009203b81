"""The files in which a gang's supervisor says how far the gang is, and those of its roles that the supervisor reads.

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

import json
import os
import select
from typing import Any

STOPPED = "Slurm ended the job"
_CAUSES = (
    ("DUE TO PREEMPTION", "another job preempted it"),
    ("DUE TO JOB REQUEUE", "it was requeued in Slurm"),
    ("DUE TO TIME LIMIT", "its time limit was reached"),
    ("DUE TO NODE FAILURE", "a node failed"),
)
"""What Slurm writes into the output of a job or step when it ends one, and what that means."""

_OUTPUT_READ = 20000  # bytes from the end of such an output
_PAUSE = 2.0  # seconds between two attempts to write the last record


def write_record(folder: str, name: str, content: "dict[str, Any]") -> None:
    """Replace a record; on a full disk the next change tries again, and the last one (`done`) until it succeeds."""
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
            select.select([], [], [], _PAUSE)
        else:
            return


def touch_record(folder: str, name: str) -> None:
    """Move the modification time of a record on; one that the server has removed stays away."""
    try:
        os.utime(os.path.join(folder, name))
    except OSError:
        return


def read_exit(folder: str, role: str) -> "dict[str, Any] | None":
    """Return the end of a role as its wrapper wrote it; None: it wrote none."""
    try:
        with open(os.path.join(folder, role + ".exit")) as file:
            return json.load(file)  # type: ignore[no-any-return]  # JSON of the wrapper
    except (OSError, ValueError):
        return None


def find_stop_cause(folder: str) -> str:
    """Return why Slurm ends the job, as far as it has said so."""
    for name in sorted(os.listdir(folder)):
        if name == "batch.log" or name.endswith(".srun"):
            with open(os.path.join(folder, name), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _OUTPUT_READ))
                text = file.read().decode("utf-8", "replace")
            for words, meaning in _CAUSES:
                if words in text:
                    return STOPPED + ": " + meaning
    return STOPPED + ": a scancel, or a preemption"


def read_last_words(folder: str, role: str) -> str:
    """Return what srun said last of a role."""
    try:
        with open(os.path.join(folder, role + ".srun"), "rb") as file:
            lines = file.read()[-2000:].decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return " ".join(line.strip() for line in lines[-4:]).strip()[:500]
