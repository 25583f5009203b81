"""What the kernel tells about a process in /proc, and what py-spy says when it cannot read its stacks. Pure.

Python 3.6 or newer, standard library only: it runs on nodes, too.
"""

import re

RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK")
"""The variables in which launchers tell a process its rank, the most specific first."""

MOST_PROCESSES = 64  # of one job that are read
MOST_DUMP = 4 << 20  # bytes of the stacks of one process
MOST_DUMPS = 16 << 20  # bytes of the stacks of one job
PATIENCE = 20.0  # seconds for one process
WHOLE_PATIENCE = 60.0  # seconds for all processes of a job
PARALLEL = 4  # processes that are read at the same time
MOST_MEMORY = 1 << 30  # bytes for one py-spy: the names of native functions may be many
LONGEST_PROFILE = 90  # seconds
PROFILE_START = 20.0  # seconds that a profile may take beyond its own
LONGEST_COMMAND = 300  # characters of a command line
ENDED = "it has just ended"  # of a process that is left out of the answer

_UNSTOPPABLE = "DTtZX"  # states in which the kernel does not let another process stop a process
_PYTHON = re.compile(rb"python|uwsgi", re.IGNORECASE)
_OWN_PROGRAM = re.compile(rb"riseml\.job_programs\.event_reader|(\.riseml|/a\d+)/event_reader\.py|/role_server\.py")
_NOT_PYTHON = re.compile("Failed to find python version|No python processes found")
_CAUSE = re.compile(r"^\s*(?:\d+: )?(.+)$")


def parse_stat(stat: bytes) -> "dict[str, object]":
    """Return the pid, the parent, the state and the name of the program from /proc/PID/stat.

    Raises:
        ValueError: the text is not that of such a file.
    """
    head, _, tail = stat.rpartition(b")")
    pid, _, name = head.partition(b" (")
    fields = tail.split()
    if len(fields) < 2:
        raise ValueError("no state and no parent")
    return {
        "pid": int(pid),
        "parent": int(fields[1]),
        "state": fields[0].decode("ascii", "replace"),
        "name": name.decode("utf-8", "replace"),
    }


def join_command(cmdline: bytes, name: str) -> str:
    """Return a command line of /proc/PID/cmdline in one line; the name of the program where there is none."""
    words = cmdline[: LONGEST_COMMAND * 4].decode("utf-8", "replace").rstrip("\0").replace("\0", " ")
    return words[:LONGEST_COMMAND] if words else name


def find_rank(environ: bytes) -> "int | None":
    """Return the rank that a launcher gave to a process, from /proc/PID/environ; None: none."""
    values = {}  # type: dict[str, str]
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if len(name) <= 30 and len(value) <= 9:
            values[name.decode("ascii", "replace")] = value.decode("ascii", "replace")
    ranks = [values[variable] for variable in RANK_VARIABLES if values.get(variable, "").isdigit()]
    return int(ranks[0]) if ranks else None


def find_most_files(limits: bytes) -> int:
    """Return how many files a process may have open, from /proc/PID/limits; 0: no bound, or not known."""
    match = re.search(rb"^Max open files +([0-9]{1,18}) ", limits, re.MULTILINE)
    return int(match.group(1)) if match else 0


def may_be_python(cmdline: bytes, maps: "bytes | None") -> bool:
    """Return False for a process that certainly runs no Python.

    Args:
        cmdline: its command line.
        maps: the begin of its list of mapped files; None: the kernel does not show it.
    """
    return maps is None or bool(_PYTHON.search(cmdline.split(b"\0")[0]) or _PYTHON.search(maps))


def is_own_program(cmdline: bytes) -> bool:
    """Return True for a program that riseml runs beside the job, of which users are told nothing."""
    return bool(_OWN_PROGRAM.search(cmdline))


def choose_options(state: str, *, native: bool, variables: bool) -> "list[str]":
    """Return the options of `py-spy dump`. A process that cannot be stopped is read while it is as it is."""
    options = ["--json", "--full-filenames"]
    if state in _UNSTOPPABLE:
        options.append("--nonblocking")
    elif native:
        options.append("--native")
    if variables:
        options.append("--locals")
    return options


def choose_profile_options(*, seconds: int, rate: int, native: bool, idle: bool) -> "list[str]":
    """Return the options of `py-spy record`, which prints each stack and how often it was seen."""
    options = ["--format", "raw", "--output", "/dev/stdout", "--subprocesses", "--full-filenames"]
    options += ["--duration", str(seconds), "--rate", str(rate)]
    return options + (["--native"] if native else []) + (["--idle"] if idle else [])


def explain_failure(errors: str, yama: str) -> str:
    """Return why py-spy printed no stacks, for people; empty: the process runs no Python.

    Args:
        errors: what py-spy printed.
        yama: the content of /proc/sys/kernel/yama/ptrace_scope; empty: there is no such file.
    """
    if _NOT_PYTHON.search(errors):
        return ""
    if re.search("permission denied|operation not permitted|EPERM|EACCES", errors, re.IGNORECASE):
        scope = yama.strip()
        if scope in ("1", "2", "3"):
            return (
                "the kernel forbids it: kernel.yama.ptrace_scope is " + scope + " on this host; with 0, which"
                " `sysctl kernel.yama.ptrace_scope=0` sets, a user may look at the own processes"
            )
        return (
            "the kernel forbids it: the process belongs to another user, has more rights than its reader, or a"
            " seccomp or AppArmor profile of the host refuses ptrace"
        )
    if re.search("no such (file|process)|ESRCH", errors, re.IGNORECASE):
        return ENDED
    causes = [row for row in errors.partition("Stack backtrace:")[0].splitlines() if row.strip()]
    cause = _CAUSE.match(causes[-1]) if causes else None
    return "py-spy says: " + cause.group(1)[:200] if cause else "py-spy ended without a word"
