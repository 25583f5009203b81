"""Read the stacks of the processes of one job: `python3 stack_reader.py ORDER`, where ORDER is JSON.

`spy` is the path of py-spy, `root` the pid of a process above the job, or `role`: the wrapper of a role above this
program; `native` and `variables` choose what is read. The answer, one line of JSON on standard output, is a list of
processes, each with `pid`, `parent`, `state`, `name`, `command`, `wait_channel`, `rank`, and `dump` (what `py-spy dump`
printed) or `trouble` (why there is none).

With `profile` (`seconds`, `rate`, `native`, `idle`) it records where the job is for some seconds instead. The answer is
an object with `text` (what `py-spy record` printed), `trouble` and `processor` (seconds that py-spy has computed).

A job cannot hold or fill this program: the number of processes, the time, the memory and the size of the answer are
bounded (`process_facts`). Nothing of the job is run.

Python 3.6 or newer, standard library only: it runs on nodes, too.
"""

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from riseml.job_programs.process_facts import (
    ENDED,
    LONGEST_COMMAND,
    MOST_DUMP,
    MOST_DUMPS,
    MOST_MEMORY,
    MOST_PROCESSES,
    PARALLEL,
    PATIENCE,
    PROFILE_START,
    WHOLE_PATIENCE,
    choose_options,
    choose_profile_options,
    explain_failure,
    find_most_files,
    find_rank,
    is_own_program,
    join_command,
    may_be_python,
    parse_stat,
)

_WRAPPER = b"role_wrapper.py"
_CHUNK = 1 << 16
_MOST_MAPS = 1 << 18  # bytes
_MOST_ERRORS = 1 << 16  # bytes
_PR_SET_PDEATHSIG = 1  # option of prctl(2)


def list_job(root: "int | str") -> "list[dict[str, Any]]":
    """Return the processes of a job, the first ones first, without those that riseml runs beside it."""
    rows = {}  # type: dict[int, dict[str, Any]]
    for name in os.listdir("/proc"):
        if name.isdigit():
            row = _read_facts(name)
            if row:
                rows[row["pid"]] = row
    hidden = _list_ancestors(rows, os.getpid())
    top = root if isinstance(root, int) else _find_wrapper(hidden)
    children = {}  # type: dict[int, list[int]]
    for row in rows.values():
        children.setdefault(row["parent"], []).append(row["pid"])
    below = []  # type: list[dict[str, Any]]
    level = [top]
    while level:
        level = [pid for parent in level for pid in children.get(parent, []) if not _is_own(rows[pid], hidden)]
        below += [rows[pid] for pid in level]
    return below


def read_stacks(order: "dict[str, Any]") -> "list[dict[str, Any]]":
    """Return the processes of a job with their stacks."""
    rows = list_job(order["root"])[:MOST_PROCESSES]
    deadline = time.monotonic() + WHOLE_PATIENCE
    with ThreadPoolExecutor(PARALLEL) as pool:
        list(pool.map(lambda row: _add_stacks(row, order, deadline), rows))
    size = 0
    rows = [row for row in rows if row["trouble"] != ENDED]
    for row in rows:
        del row["cmdline"]
        size += len(row["dump"])
        if size > MOST_DUMPS:
            row["dump"] = ""
            row["trouble"] = "the stacks of the whole job are larger than 16 MiB"
    return rows


def record_profile(order: "dict[str, Any]") -> "dict[str, Any]":
    """Return where the outermost Python process of a job and those below it are, for some seconds."""
    for row in list_job(order["root"]):
        if may_be_python(row["cmdline"], _try_read(str(row["pid"]), "maps", _MOST_MAPS) or None):
            break
    else:
        return {"text": "", "trouble": "it runs no Python", "processor": 0.0}
    command = [order["spy"], "record", "--pid", str(row["pid"]), *choose_profile_options(**order["profile"])]
    deadline = time.monotonic() + order["profile"]["seconds"] + PROFILE_START
    code, output, errors = run_bounded(command, deadline)
    trouble = "" if code == 0 else errors
    if code:
        yama = _try_read("sys", "kernel/yama/ptrace_scope").decode("ascii", "replace")
        trouble = explain_failure(errors, yama) or "it runs no Python"
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "text": output.decode("utf-8", "replace"),
        "trouble": trouble,
        "processor": use.ru_utime + use.ru_stime,
    }


def _read_facts(name: str) -> "dict[str, Any]":
    """Return what the kernel tells about a process; empty: it has ended."""
    try:
        row = parse_stat(_read_file(name, "stat"))  # type: dict[str, Any]
        row["cmdline"] = _read_file(name, "cmdline", LONGEST_COMMAND * 4)
    except (OSError, ValueError):
        return {}
    row["command"] = join_command(row["cmdline"], row["name"])
    row.update(wait_channel="", rank=None, dump="", trouble="", open_files=0, most_files=0)
    return row


def _add_stacks(row: "dict[str, Any]", order: "dict[str, Any]", deadline: float) -> None:
    name = str(row["pid"])
    row["wait_channel"] = _try_read(name, "wchan").decode("ascii", "replace").replace("\0", "").strip("0 \n")
    row["rank"] = find_rank(_try_read(name, "environ", 1 << 20))
    row["open_files"] = _count_files(name)
    row["most_files"] = find_most_files(_try_read(name, "limits"))
    maps = _try_read(name, "maps", _MOST_MAPS)
    if not may_be_python(row["cmdline"], maps or None):
        return
    options = choose_options(row["state"], native=order["native"], variables=order["variables"])
    command = [order["spy"], "dump", "--pid", name]
    code, output, errors = run_bounded(command + options, min(deadline, time.monotonic() + PATIENCE))
    if code == 0:
        row["dump"] = output.decode("utf-8", "replace")
    elif code is None:
        row["trouble"] = errors
    else:
        yama = _try_read("sys", "kernel/yama/ptrace_scope").decode("ascii", "replace")
        row["trouble"] = explain_failure(errors, yama)


def run_bounded(command: "list[str]", deadline: float) -> "tuple[int | None, bytes, str]":
    """Run a program; return its exit code, its output and its errors. None: it was ended, and the errors say why."""
    if time.monotonic() >= deadline:
        return None, b"", "there was no time left for it"
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=end_with_parent,
    )
    resource.prlimit(process.pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
    assert process.stdout is not None and process.stderr is not None
    outputs = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    limits = {process.stdout.fileno(): MOST_DUMP, process.stderr.fileno(): _MOST_ERRORS}
    ended = ""
    try:
        ended = _read_outputs(outputs, limits, deadline)
    finally:
        if ended:
            process.kill()
        code = process.wait()
        process.stdout.close()
        process.stderr.close()
    output, errors = outputs.values()
    return (None, b"", ended) if ended else (code, bytes(output), errors.decode("utf-8", "replace"))


def _read_outputs(outputs: "dict[int, bytearray]", limits: "dict[int, int]", deadline: float) -> str:
    """Read until both outputs have ended; return why a process has to be ended before; empty: it has ended."""
    open_outputs = set(outputs)
    while open_outputs:
        ready = select.select(list(open_outputs), [], [], max(0.0, deadline - time.monotonic()))[0]
        if not ready:
            return "its stacks could not be read in time"
        for descriptor in ready:
            data = os.read(descriptor, _CHUNK)
            outputs[descriptor] += data
            if not data:
                open_outputs.discard(descriptor)
            elif len(outputs[descriptor]) > limits[descriptor]:
                return "its stacks are larger than 4 MiB"
    return ""


def end_with_parent() -> None:
    """Let the kernel kill this process when the process that started it has ended."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _list_ancestors(rows: "dict[int, dict[str, Any]]", pid: int) -> "list[dict[str, Any]]":
    """Return a process and those above it."""
    above = []
    while pid in rows:
        above.append(rows[pid])
        pid = rows[pid]["parent"]
    return above


def _find_wrapper(above: "list[dict[str, Any]]") -> int:
    for row in above:
        if _WRAPPER in row["cmdline"]:
            return int(row["pid"])
    return 0


def _is_own(row: "dict[str, Any]", hidden: "list[dict[str, Any]]") -> bool:
    """Return True for a process of riseml's own, of which nothing is told."""
    return row in hidden or is_own_program(row["cmdline"])


def _count_files(name: str) -> int:
    """Return how many files a process has open; 0: the kernel does not tell."""
    try:
        return len(os.listdir("/proc/" + name + "/fd"))
    except OSError:
        return 0


def _read_file(name: str, file: str, size: int = 4096) -> bytes:
    with open("/proc/" + name + "/" + file, "rb") as stream:
        return stream.read(size)


def _try_read(name: str, file: str, size: int = 4096) -> bytes:
    try:
        return _read_file(name, file, size)
    except OSError:
        return b""


def main() -> None:
    """Print the stacks of one job, or its profile."""
    end_with_parent()
    order = json.loads(sys.argv[1])
    print(json.dumps(record_profile(order) if order.get("profile") else read_stacks(order)))


if __name__ == "__main__":
    main()
