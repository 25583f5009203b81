"""Equal stacks of many ranks as one group, and the groups as a sentence.

Each rank stands for itself by the main thread of its main Python process: the outermost one of a job, or of each rank
where a launcher starts several in one job. A place is the innermost line of the user's own code, with the function of a
library that it calls: `all_reduce (train.py:88)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from riseml.base.records import dataclass
from riseml.diagnosis.stacks import ProcessStacks, StackFrame, ThreadStack

_LIBRARY = re.compile(r"(^|/)(site-packages|dist-packages|lib(64)?/python[0-9.]+)/|^<|\.so(\.|$)")
_WRAPPERS = frozenset(
    {"wrapper", "wrapped", "inner", "decorator", "decorate_context", "_fn", "error_handler"}
    | {"__call__", "_call_impl", "_wrapped_call_impl", "Module._call_impl", "Module._wrapped_call_impl"}
)  # functions of libraries that only call the function that a user means
_LAUNCHER = re.compile(
    r"(^|[/ ])(torchrun|horovodrun|mpirun|deepspeed)( |$)|torch[./]distributed[./](run|launch)\b"
    r"|accelerate(\.commands\.launch| launch)|Runs one script in several processes of a job"
)  # of processes that only start the ranks
_SHELL = re.compile(r"(\S*/)?(ba|da|z)?sh( |$)")  # what runs the lines of a job
_MOST_NAMED = 3  # ranks of a group whose names the sentence has
_UNINTERRUPTIBLE = "D"
_STOPPED = ("T", "t")
_ENDED = "Z"


@dataclass(frozen=True, slots=True)
class StackPlace:
    """Where a stack is, for people."""

    function: str  # called there: `all_reduce`
    file: str  # the path of the user's code; of a stack without any, that of the library
    line: int

    def __str__(self) -> str:
        name = self.file.rpartition("/")[2]
        return f"{self.function} ({name}:{self.line})" if self.line else f"{self.function} ({name})"


@dataclass(frozen=True, slots=True)
class StackGroup:
    """The ranks that are at one place."""

    ranks: tuple[str, ...]  # `worker.2`; `worker.2 rank 5` where a job has several
    place: StackPlace | None  # None: their stacks are not known
    is_idle: bool  # True: all of them wait
    frames: tuple[StackFrame, ...] = ()  # of the first rank, the innermost first
    remark: str = ""  # what is known without a stack: `bash runs, no Python program`


def fold_stacks(processes: Iterable[ProcessStacks]) -> tuple[StackGroup, ...]:
    """Return the ranks in groups of equal places, the largest group first."""
    groups: dict[tuple[StackPlace | None, str], list[tuple[str, ThreadStack | None]]] = {}
    for name, process in find_main_processes(processes):
        thread = find_main_thread(process)
        place = None if thread is None else find_place(thread.frames)
        groups.setdefault((place, _describe_state(process, place)), []).append((name, thread))
    folded = [_make_group(place, remark, members) for (place, remark), members in groups.items()]
    return tuple(sorted(folded, key=lambda group: -len(group.ranks)))


def describe_groups(groups: Sequence[StackGroup]) -> str:
    """Return the groups as a sentence, such as `3 ranks wait in all_reduce (train.py:88), worker.2 is in ...`."""
    return ", ".join(_describe_group(group) for group in groups)


def find_main_processes(processes: Iterable[ProcessStacks]) -> list[tuple[str, ProcessStacks]]:
    """Return the process that stands for each rank, with the name of the rank, in the order of jobs and ranks."""
    jobs: dict[str, list[ProcessStacks]] = {}
    for process in processes:
        jobs.setdefault(process.job, []).append(process)
    return [main for job, members in jobs.items() for main in _find_ranks(job, members)]


def _find_ranks(job: str, processes: Sequence[ProcessStacks]) -> list[tuple[str, ProcessStacks]]:
    """Return the process that stands for each rank of a job, or for the job."""
    python = [process for process in processes if process.is_python or process.trouble]
    python = [process for process in python if not _LAUNCHER.search(process.command)] or python
    ranks = {process.rank for process in python if process.rank is not None}
    if len(ranks) < 2:
        programs = [process for process in processes if not _SHELL.match(process.command)]
        return [(job, _find_outermost(python or programs or processes))]
    named = [(rank, [process for process in python if process.rank == rank]) for rank in sorted(ranks)]
    return [(f"{job} rank {rank}", _find_outermost(members)) for rank, members in named]


def find_main_thread(process: ProcessStacks) -> ThreadStack | None:
    """Return the thread that says what a process does; None: there are no stacks."""
    return next((thread for thread in process.threads if thread.frames), None)


def find_place(frames: Sequence[StackFrame]) -> StackPlace | None:
    """Return where a stack is: the innermost line of the user's own code; without any, the innermost frame of Python.

    Args:
        frames: of one thread, the innermost first.
    """
    python = [frame for frame in frames if not frame.is_native] or list(frames)
    own = next((at for at, frame in enumerate(python) if is_own_code(frame)), None)
    if own is None:
        return StackPlace(python[0].function, python[0].file, python[0].line) if python else None
    called = [frame.function for frame in reversed(python[:own]) if not _is_wrapper(frame.function)]
    return StackPlace(called[0] if called else python[own].function, python[own].file, python[own].line)


def _is_wrapper(function: str) -> bool:
    return function in _WRAPPERS or function.rpartition(".")[2] in _WRAPPERS


def is_own_code(frame: StackFrame) -> bool:
    """Return True for a frame of the project, and False for those of Python and of packages."""
    return not frame.is_native and not _LIBRARY.search(frame.file)


def _find_outermost(processes: Sequence[ProcessStacks]) -> ProcessStacks:
    """Return the process that none of the others has started; of several, the one with the lowest pid."""
    pids = {process.pid for process in processes}
    return min(processes, key=lambda process: (process.parent in pids, process.pid))


def _describe_state(process: ProcessStacks, place: StackPlace | None) -> str:
    """Return what is to say of a process beside its place; empty: nothing."""
    program = process.command.split(" ")[0].rpartition("/")[2] or "a process"
    channel = f" in {process.wait_channel}" if process.wait_channel else ""
    if process.state == _UNINTERRUPTIBLE:
        return f"sleeps{channel or ' in the kernel'} and cannot be interrupted"
    if process.state in _STOPPED:
        return "is stopped by a signal"
    if process.state == _ENDED:
        return f"has ended, and nothing has waited for it ({program})"
    if place is not None:
        return ""
    if process.trouble:
        return f"does not show its stacks: {process.trouble}"
    return f"runs {program}, which is not Python" + (f", and waits{channel}" if channel else "")


def _make_group(place: StackPlace | None, remark: str, members: list[tuple[str, ThreadStack | None]]) -> StackGroup:
    threads = [thread for _, thread in members if thread is not None]
    return StackGroup(
        ranks=tuple(name for name, _ in members),
        place=place,
        is_idle=all(thread.is_idle for thread in threads),
        frames=threads[0].frames if threads else (),
        remark=remark,
    )


def _describe_group(group: StackGroup) -> str:
    count = len(group.ranks)
    name = " and ".join(group.ranks) if count < _MOST_NAMED else f"{count} ranks"
    plural = count > 1
    if group.place is None:
        return f"{name} {_make_plural(group.remark) if plural else group.remark}"
    verb = ("wait in" if plural else "waits in") if group.is_idle else ("are in" if plural else "is in")
    remark = f", where it {group.remark}" if group.remark and not plural else ""
    if group.remark and plural:
        remark = f", where each {group.remark}"
    return f"{name} {verb} {group.place}{remark}"


def _make_plural(remark: str) -> str:
    """Return a remark about one process for several: `runs bash` becomes `run bash`."""
    verb = remark.split(" ")[0]
    plural = {"is": "are", "has": "have", "does": "do"}.get(verb, verb.removesuffix("s"))
    return plural + remark.removeprefix(verb)
