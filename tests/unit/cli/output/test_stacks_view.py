"""Tests of riseml.cli.output.stacks_view: each stack once, with the threads that have it."""

from __future__ import annotations

from riseml import wire
from riseml.cli.output.stacks_view import list_places, list_stacks
from riseml.cli.output.style import Style

FRAMES: list[wire.StackFrameView] = [
    {"function": "all_reduce", "file": "/lib/torch.py", "line": 7, "native": False, "variables": []},
    {
        "function": "train",
        "file": "train.py",
        "line": 88,
        "native": False,
        "variables": [{"name": "lr", "value": "0.1\x1b[2J"}],
    },
]


def make_process(pid: int, *threads: wire.ThreadStackView, **other: str) -> wire.ProcessStacksView:
    """Return a process of a job."""
    process: wire.ProcessStacksView = {
        "pid": pid,
        "parent": 1,
        "command": "python train.py",
        "state": "S",
        "wait_channel": "futex_wait",
        "rank": None,
        "threads": list(threads),
        "trouble": "",
    }
    return {**process, **other}  # type: ignore[typeddict-item]  # the names of its texts


def make_thread(name: str = "MainThread", *, idle: bool = True) -> wire.ThreadStackView:
    """Return a thread with the stack above."""
    return {"name": name, "thread": 9, "idle": idle, "holds_gil": False, "frames": FRAMES}


def test_equal_stacks_are_printed_once_and_the_rest_is_told() -> None:
    jobs: list[wire.JobStacksView] = [
        {
            "id": f"4.worker.{number}",
            "host": "gpu1",
            "processes": [make_process(7, make_thread(idle=number > 1))],
            "trouble": "",
        }
        for number in range(1, 7)
    ]
    jobs[0]["processes"].append(make_process(8, make_thread("")))
    jobs[0]["processes"].append(make_process(9, command="sleep 60"))
    jobs[0]["processes"].append(make_process(10, trouble="the kernel forbids it"))
    jobs.append({"id": "4.ps.1", "host": "gpu2", "processes": [], "trouble": "gpu2 does not answer"})
    stacks: wire.StacksView = {"id": "4", "time": "", "summary": "6 ranks \x07wait", "groups": [], "jobs": jobs}
    assert list_stacks(stacks, Style()) == [
        "4: 6 ranks \\x07wait",
        "",
        "4.worker.1 pid 7 MainThread, 4.worker.1 pid 8 thread 9, 4.worker.2 pid 7 MainThread,"
        " 4.worker.3 pid 7 MainThread and 3 other threads (6 of 7 wait)",
        "    all_reduce  /lib/torch.py:7",
        "    train  train.py:88",
        "        lr = 0.1",
        "",
        "4.worker.1 pid 9 sleep 60: no Python, state S in futex_wait",
        "4.worker.1 pid 10 python train.py: the kernel forbids it",
        "4.ps.1 was not read: gpu2 does not answer",
    ]


def test_the_places_of_all_ranks_are_a_table() -> None:
    groups: list[wire.StackGroupView] = [
        {
            "ranks": [f"worker.{number}" for number in range(1, 8)],
            "place": "all_reduce (train.py:88)",
            "idle": True,
            "remark": "",
        },
        {
            "ranks": ["worker.8"],
            "place": "decode\x1b[2J (data.py:4)",
            "idle": False,
            "remark": "is stopped by a signal",
        },
        {"ranks": ["ps.1"], "place": None, "idle": True, "remark": "runs redis"},
    ]
    jobs: list[wire.JobStacksView] = [{"id": "4.ps.2", "host": None, "processes": [], "trouble": "no answer"}]
    time = "2026-11-29T02:22:26.123456Z"
    stacks: wire.StacksView = {"id": "4", "time": time, "summary": "", "groups": groups, "jobs": jobs}
    assert [" ".join(line.split()) for line in list_places(stacks, Style())] == [
        "4 at 02:22:26 UTC",
        "",
        "N RANKS STATE WHERE",
        "7 worker.1, worker.2, worker.3, worker.4 and 3 more waits all_reduce (train.py:88)",
        "1 worker.8 runs decode (data.py:4), is stopped by a signal",
        "1 ps.1 - runs redis",
        "4.ps.2 was not read: no answer",
    ]
