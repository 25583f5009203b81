"""The stacks of the processes of a run, as records."""

from __future__ import annotations

from riseml.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """A local variable of a frame."""

    name: str
    value: str  # as Python's `repr` shows it, shortened


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One call of a stack."""

    function: str  # `all_reduce`, `Trainer.fit`; an address where no name is known
    file: str  # its path in the job; of a native frame, the library
    line: int = 0  # 0: not known
    is_native: bool = False  # True: of a library in C, C++ or Rust
    variables: tuple[Variable, ...] = ()  # only where the owner of the experiment asked for them


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """What one thread does."""

    name: str  # `MainThread`; empty: Python has no name for it
    thread: int  # id of the kernel, as the job sees it; 0: not known
    frames: tuple[StackFrame, ...]  # the innermost first
    is_idle: bool  # True: it waits, in a call of the kernel; False: it computes
    holds_gil: bool = False  # True: it has the lock that only one thread of a Python process has


@dataclass(frozen=True, slots=True)
class ProcessStacks:
    """What one process of a job does. A process without Python has no threads here."""

    job: str  # `worker.2`
    pid: int  # as the job sees it
    parent: int  # pid of the process that started it; 0: it is outside of the job
    command: str  # its command line, shortened
    state: str  # the letter of the kernel: R runs, S sleeps, D waits uninterruptibly, T is stopped, Z has ended
    wait_channel: str = ""  # function of the kernel in which it sleeps; empty: it runs, or the kernel does not tell
    rank: int | None = None  # from its variable RANK or that of MPI; None: it has none
    threads: tuple[ThreadStack, ...] = ()  # the main thread first
    trouble: str = ""  # why there are no stacks, for people; empty: there are, or it is no Python program
    open_files: int = 0  # that it has; 0: not known
    most_files: int = 0  # that it may have; 0: not known

    @property
    def is_python(self) -> bool:
        """True when the process runs Python, and its stacks could be read."""
        return bool(self.threads)
