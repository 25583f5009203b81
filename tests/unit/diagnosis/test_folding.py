"""Tests of riseml.diagnosis.folding: equal stacks together, in a sentence."""

from __future__ import annotations

import pytest

from riseml.diagnosis.folding import StackPlace, describe_groups, find_place, fold_stacks
from riseml.diagnosis.stacks import ProcessStacks, StackFrame, ThreadStack

TORCH = "/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
LOADER = "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
REDUCING = (
    StackFrame("__futex_wait", "/usr/lib/libc.so.6", is_native=True),
    StackFrame("all_reduce", TORCH, 2806),
    StackFrame("wrapper", "/usr/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", 83),
    StackFrame("average", "/code/train.py", 88),
    StackFrame("<module>", "/code/train.py", 120),
)
LOADING = (
    StackFrame("select", "/usr/lib/python3.11/selectors.py", 415),
    StackFrame("_MultiProcessingDataLoaderIter._next_data", LOADER, 1402),
    StackFrame("_BaseDataLoaderIter.__next__", LOADER, 701),
    StackFrame("read_batches", "/code/data.py", 41),
)


def make_process(
    job: str,
    frames: tuple[StackFrame, ...] = (),
    *,
    pid: int = 1,
    parent: int = 0,
    is_idle: bool = True,
    **other: object,
) -> ProcessStacks:
    """Return a process whose only thread has these frames."""
    threads = (ThreadStack("MainThread", pid, frames, is_idle=is_idle),) if frames else ()
    values = {"command": "python train.py", "state": "S", "threads": threads, **other}
    return ProcessStacks(job, pid, parent, **values)  # type: ignore[arg-type]  # of several types


def describe(*processes: ProcessStacks) -> str:
    """Return the sentence about these processes."""
    return describe_groups(fold_stacks(processes))


def test_the_ranks_that_wait_are_counted_and_the_one_elsewhere_is_named() -> None:
    waiting = [make_process(f"worker.{number}", REDUCING) for number in (1, 3, 4)]
    assert describe(make_process("worker.2", LOADING, is_idle=False), *waiting) == (
        "3 ranks wait in all_reduce (train.py:88), worker.2 is in _BaseDataLoaderIter.__next__ (data.py:41)"
    )


def test_a_job_stands_for_itself_by_its_outermost_python_process() -> None:
    shell = make_process("worker.1", pid=1, command="sh -c python")
    loaders = [make_process("worker.1", LOADING, pid=pid, parent=8) for pid in (3, 9)]
    main = make_process("worker.1", REDUCING, pid=8, parent=1)
    assert describe(shell, *loaders, main) == "worker.1 waits in all_reduce (train.py:88)"


def test_a_job_without_python_stands_for_itself_by_its_program() -> None:
    shell = make_process("ps.1", pid=1, command="bash -c redis-server")
    program = make_process("ps.1", pid=2, parent=1, command="redis-server", wait_channel="ep_poll")
    assert describe(shell, program) == "ps.1 runs redis-server, which is not Python, and waits in ep_poll"
    assert describe(shell) == "ps.1 runs bash, which is not Python"


def test_a_launcher_does_not_stand_for_its_only_rank() -> None:
    launcher = make_process("worker.1", LOADING, pid=2, command="/opt/venv/bin/python /opt/venv/bin/torchrun train.py")
    rank = make_process("worker.1", REDUCING, pid=9, parent=2, rank=0)
    assert describe(launcher, rank) == "worker.1 waits in all_reduce (train.py:88)"


def test_each_rank_of_a_launcher_stands_for_itself() -> None:
    launcher = make_process("worker.1", LOADING, pid=2)
    ranks = [make_process("worker.1", REDUCING, pid=10 + rank, parent=2, rank=rank) for rank in (0, 1)]
    children = [make_process("worker.1", LOADING, pid=20 + rank, parent=10 + rank, rank=rank) for rank in (0, 1)]
    assert describe(launcher, *children, *ranks) == (
        "worker.1 rank 0 and worker.1 rank 1 wait in all_reduce (train.py:88)"
    )


@pytest.mark.parametrize(
    ("process", "sentence"),
    [
        (
            make_process("ps.1", command="/usr/bin/redis-server *:6379", wait_channel="ep_poll"),
            "ps.1 runs redis-server, which is not Python, and waits in ep_poll",
        ),
        (
            make_process("ps.1", trouble="the kernel forbids it"),
            "ps.1 does not show its stacks: the kernel forbids it",
        ),
        (
            make_process("ps.1", REDUCING, state="D", wait_channel="nfs_wait"),
            "ps.1 waits in all_reduce (train.py:88), where it sleeps in nfs_wait and cannot be interrupted",
        ),
        (make_process("ps.1", state="T"), "ps.1 is stopped by a signal"),
        (make_process("ps.1", state="Z"), "ps.1 has ended, and nothing has waited for it (python)"),
    ],
)
def test_what_is_known_without_a_stack_is_told(process: ProcessStacks, sentence: str) -> None:
    assert describe(process) == sentence


def test_several_jobs_without_a_stack_share_a_sentence() -> None:
    assert describe(*(make_process(f"ps.{number}", state="T") for number in (1, 2, 3))) == (
        "3 ranks are stopped by a signal"
    )


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        ((StackFrame("step", "/code/train.py", 7),), "step (train.py:7)"),
        ((StackFrame("wait", "/usr/lib/python3.11/threading.py", 320),), "wait (threading.py:320)"),
        ((StackFrame("poll", "/usr/lib/libc.so.6", is_native=True),), "poll (libc.so.6)"),
        ((StackFrame("_call_impl", TORCH, 5), StackFrame("forward", "/code/net.py", 3)), "forward (net.py:3)"),
    ],
)
def test_the_place_is_the_innermost_line_of_the_user(frames: tuple[StackFrame, ...], place: str) -> None:
    assert str(find_place(frames)) == place


def test_no_frames_are_no_place() -> None:
    assert find_place(()) is None
    assert StackPlace("f", "a.py", 1) in {StackPlace("f", "a.py", 1)}
