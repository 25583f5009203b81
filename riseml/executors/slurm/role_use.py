"""What a role uses, as its wrapper records it: ROLE.use in the folder of the gang, replaced at each reading.

The numbers count from the start of the role, so a reader that missed some readings still has the means between two. The
first readings come soon, so that a short role leaves something. Beside them `machines/ROLE.json` says on which node the
role runs, with what kernel and GPUs, for the record of the experiment; it outlasts the gang's folder.

Python 3.6 or newer, standard library only: nodes do not have riseml.
"""

import json
import os
import shutil
import subprocess
import time
from typing import Any

from riseml.executors.supervision import process_tree

_FIRST = 1.0  # seconds until the second reading; each pause is twice the one before
_TABLE = 20.0  # seconds that nvidia-smi may take
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class UseRecorder:
    """The readings of one role.

    Args:
        folder: of the gang.
        role: its name.
        order: `every` (seconds between two readings) and `gpu_query` (the command whose table says what the GPUs do;
            empty: the role has none).
    """

    def __init__(self, folder: str, role: str, order: "dict[str, Any]") -> None:
        self._path = os.path.join(folder, role + ".use")
        self._machine = os.path.join(os.path.dirname(folder), "machines", os.path.basename(folder) + "." + role)
        self._every = float(order.get("every") or 5.0)
        query = order.get("gpu_query") or []  # type: list[str]
        self._query = query if query and shutil.which(query[0]) else []
        self._smi = None  # type: subprocess.Popen[bytes] | None
        self._smi_end = 0.0
        self._table = ""  # what nvidia-smi printed last
        self._began = time.time()
        self._due = 0.0
        self._pause = min(_FIRST, self._every)
        self._written = ""

    def find_timeout(self) -> float:
        """Return in how many seconds the next reading is due."""
        return max(0.0, self._due - time.monotonic())

    def find_reader(self) -> int:
        """Return the pid of the nvidia-smi that this process has started; -1: none runs."""
        return -1 if self._smi is None else self._smi.pid

    def record_use(self, root: int) -> None:
        """Record what the processes below `root` use, if a reading is due."""
        self._read_table()
        now = time.monotonic()
        if now < self._due:
            return
        self._due, self._pause = now + self._pause, min(self._every, self._pause * 2)
        own = self.find_reader()
        use = read_use([pid for pid in process_tree.list_descendants(root) if pid != own])
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        gpus = dict(gpus=visible, gpu_table=self._table)
        self._replace(self._path, dict(use, began=self._began, at=time.time(), every=self._every, **gpus))
        self._tell_machine(gpus)
        if self._query and self._smi is None:
            self._start_query()

    def _tell_machine(self, gpus: "dict[str, str]") -> None:
        """Write the machine's record once, and again when the table of the GPUs has arrived."""
        if self._written == "all" or (self._written and not self._table):
            return
        node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
        self._replace(self._machine, dict(gpus, node=node, system=os.uname().sysname, kernel=os.uname().release))
        self._written = "all" if self._table or not self._query else "part"

    def _start_query(self) -> None:
        try:
            self._smi = subprocess.Popen(
                self._query, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            self._query = []
        self._smi_end = time.monotonic() + _TABLE

    def _read_table(self) -> None:
        """Take the table of an nvidia-smi that has ended. A hanging driver blocks that process, but no reading."""
        if self._smi is None:
            return
        code = self._smi.poll()
        if code is None and time.monotonic() > self._smi_end:
            self._smi.kill()
        elif code is not None:
            assert self._smi.stdout is not None
            self._table = self._smi.stdout.read().decode("utf-8", "replace")[:20000]
            self._smi.stdout.close()
            self._smi = None

    def _replace(self, path: str, content: "dict[str, Any]") -> None:
        """Replace a file. On a full disk this reading is lost."""
        try:
            with open(path + ".new", "w") as file:
                json.dump(content, file)
            os.rename(path + ".new", path)
        except OSError:
            return


def read_use(pids: "list[int]") -> "dict[str, float]":
    """Return what processes have used: `cpu` (seconds), `memory` (bytes now), `disk_read`, `disk_write` (bytes).

    The processor time of a process counts that of its children which have ended.
    """
    total = {"cpu": 0.0, "memory": 0.0, "disk_read": 0.0, "disk_write": 0.0}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            total["cpu"] += sum(int(ticks) for ticks in fields[11:15]) / _TICKS
            total["memory"] += _read_memory(pid, int(fields[21]) * _PAGE)
            moved = _read_pairs(f"/proc/{pid}/io")
            total["disk_read"] += moved.get("read_bytes", 0)
            total["disk_write"] += moved.get("write_bytes", 0)
        except (OSError, IndexError, ValueError):  # it has ended, or is a setuid program of another user
            continue
    return total


def _read_memory(pid: int, resident: int) -> int:
    """Return the memory of a process with its part of shared memory; before Linux 4.14 with all of it."""
    try:
        return _read_pairs(f"/proc/{pid}/smaps_rollup")["Pss"] * 1024
    except (OSError, KeyError):
        return resident


def _read_pairs(path: str) -> "dict[str, int]":
    with open(path) as file:
        rows = [line.split() for line in file]
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}
