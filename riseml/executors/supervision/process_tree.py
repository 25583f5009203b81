"""List and signal the processes below a process. Python 3.6 or newer, standard library only: it runs on nodes, too."""

import errno
import os
import select
import signal
import time

MARKER = "RISEML_JOB_KEY"
"""A variable of each process of a job without a container. Such a job gets SIGTERM in each of its processes, so that no
program of it may pass the signal on (`job_programs.rank_launcher`)."""

LEAVE_TIME = 0.5
"""Seconds for which what a job has left in the background may end by itself: `> >(tee log)` reads to the end."""

_REPLACE_TIMEOUT = 1.0  # seconds for which a process may be between two programs
_REPLACE_PAUSE = 1  # milliseconds between two looks at it: nothing tells when its new program begins
_ENV_START = 47  # the place of `env_start` behind the name of a program in /proc/PID/stat
_MOST_NAMED = 3  # processes in a sentence
_LONGEST_NAME = 60  # characters of the name of a process
_OOM_SCORE = 500  # a machine without memory kills jobs first, before what supervises them


def list_descendants(root: int) -> "list[int]":
    """Return the pid of every process below `root`. A zombie is one of them: its other threads may still run."""
    children = {}  # type: dict[int, list[int]]
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    below = []  # type: list[int]
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, [])]
        below += level
    return below


def send_signal(pid: int, number: int) -> bool:
    """Signal a process; False when this user may not. A process that has ended counts as signalled."""
    try:
        os.kill(pid, number)
    except OSError as error:
        return error.errno == errno.ESRCH
    return True


def reset_signals(*ignored: signal.Signals) -> None:
    """Give this process the signal handling of a new one, which ignores some: at no moment do those end it."""
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.Signals:
        if number not in (signal.SIGKILL, signal.SIGSTOP, *ignored):
            signal.signal(number, signal.SIG_DFL)


def raise_oom_score() -> None:
    """Let the kernel kill this process before others. Raising the score needs no privilege; lowering it does."""
    with open("/proc/self/oom_score_adj", "r+") as file:
        if int(file.read()) < _OOM_SCORE:
            file.write(str(_OOM_SCORE))


def has_raised_score(pid: int) -> bool:
    """Return True for a process with the score of `raise_oom_score`. Children inherit it; only root can lower it."""
    try:
        with open("/proc/" + str(pid) + "/oom_score_adj") as file:
            return int(file.read()) >= _OOM_SCORE
    except OSError:
        return False


def read_environment(pid: int) -> "dict[str, str]":
    """Return the variables with which a process was started. While the kernel replaces the program of a process
    (`execve`), the process has none: the answer waits until the new program has its own.

    Raises:
        OSError: it has ended, or is not this user's.
    """
    replaced = select.poll()
    deadline = time.monotonic() + _REPLACE_TIMEOUT
    while True:
        with open("/proc/" + str(pid) + "/environ", "rb") as file:
            content = file.read()
        if content or _has_no_variables(pid) or time.monotonic() > deadline:
            break
        replaced.poll(_REPLACE_PAUSE)
    pairs = [os.fsdecode(pair).partition("=") for pair in content.split(b"\0") if pair]
    return {name: value for name, _, value in pairs if name}


def _has_no_variables(pid: int) -> bool:
    """Return True for a process whose program was started without variables (`env_start` and `env_end` of
    proc_pid_stat(5) are the same place); between two programs there is no such place yet.

    Raises:
        OSError: it has no program, because it is a thread of the kernel or a zombie.
    """
    os.readlink("/proc/" + str(pid) + "/exe")
    with open("/proc/" + str(pid) + "/stat", "rb") as file:
        start, end = map(int, file.read().rpartition(b")")[2].split()[_ENV_START : _ENV_START + 2])
    return start == end != 0


def describe_left(pids: "list[int]") -> bytes:
    """Return the line about processes that end with the script which has left them behind; empty when none runs."""
    names = [name for name in map(_name_process, pids) if name]
    if not names:
        return b""
    more = len(names) - _MOST_NAMED
    listing = ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    end = f"so ends what it left in the background: {listing} (a last line `wait` lets that end first)"
    return f"[riseml: the script has ended, and {end}]\n".encode("utf-8", "replace")


def _name_process(pid: int) -> str:
    """Return the program of a process and its first argument; empty when it has ended."""
    try:
        with open("/proc/" + str(pid) + "/cmdline", "rb") as file:
            words = file.read(4096).decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    name = " ".join([os.path.basename(words[0]), *words[1:2]]).strip()
    return "".join(char if " " <= char <= "~" else " " for char in name)[:_LONGEST_NAME]
