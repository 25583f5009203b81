"""What the processes of a running experiment do: the stacks of their threads."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict


class StacksRequest(TypedDict):
    """What is read of each process."""

    native: NotRequired[bool]  # true: the calls of libraries in C, C++ and Rust, too
    variables: NotRequired[bool]  # true: the values of local variables, too; for the owner of the experiment alone


class LocalVariableView(TypedDict):
    """A local variable of a call."""

    name: str
    value: str  # as Python's `repr` shows it, shortened


class StackFrameView(TypedDict):
    """One call of a stack."""

    function: str
    file: str  # its path in the job; of a native call, the library
    line: int  # 0: not known
    native: bool  # of a library in C, C++ or Rust
    variables: list[LocalVariableView]  # empty unless they were asked for


class ThreadStackView(TypedDict):
    """What one thread does."""

    name: str  # empty: Python has no name for it
    thread: int  # id of the kernel, as the job sees it
    idle: bool  # it waits in a call of the kernel
    holds_gil: bool  # it has the lock that one thread of a Python process has
    frames: list[StackFrameView]  # the innermost first


class ProcessStacksView(TypedDict):
    """What one process of a job does."""

    pid: int  # as the job sees it
    parent: int
    command: str
    state: str  # the letter of the kernel: R, S, D, T or Z
    wait_channel: str  # function of the kernel in which it sleeps; empty: not known
    rank: int | None
    threads: list[ThreadStackView]  # the main thread first; empty: no Python, or `trouble` says why
    trouble: str  # why there are no stacks; empty: there are, or it runs no Python


class JobStacksView(TypedDict):
    """What the processes of one job do."""

    id: str  # `4.worker.1`
    host: str | None
    processes: list[ProcessStacksView]
    trouble: str  # why the job could not be read; empty: it could


class StackGroupView(TypedDict):
    """The ranks that are at one place."""

    ranks: list[str]  # `worker.2`; `worker.2 rank 5` where a job has several
    place: str | None  # `all_reduce (train.py:88)`; null: not known
    idle: bool  # all of them wait
    remark: str  # what is known beside the place; empty: nothing


class StacksView(TypedDict):
    """What all ranks of an experiment do at nearly the same moment."""

    id: str
    time: str  # RFC 3339: when the server began to read them
    summary: str  # the groups as a sentence
    groups: list[StackGroupView]  # the largest first
    jobs: list[JobStacksView]


class ProfileOptions(TypedDict):
    """How a job is recorded."""

    seconds: NotRequired[int]  # 1 to 90; 30 by default
    rate: NotRequired[int]  # samples in a second, 1 to 1000; 100 by default
    native: NotRequired[bool]  # true: the calls of libraries in C, C++ and Rust, too
    idle: NotRequired[bool]  # true: threads that wait, too


class HotLineView(TypedDict):
    """A line of code, and its part of the samples."""

    call: str  # `train (train.py:88)`
    own: float  # per cent of the samples in which it was the innermost call
    total: float  # per cent of the samples in which it was anywhere in the stack


class ProfileView(TypedDict):
    """Where a job was for some seconds."""

    id: str  # `4.worker.1`
    time: str  # RFC 3339: when it began
    seconds: int
    rate: int  # samples in a second that were asked for
    samples: int  # that were taken, of all its processes
    errors: int  # samples that could not be read
    overhead: float  # per cent of one core that the sampling took: the processes stood still for a part of it at most
    top: list[HotLineView]  # the hottest first
    flame_graph: str  # an SVG picture
    speedscope: dict[str, Any]  # the file for https://speedscope.app
