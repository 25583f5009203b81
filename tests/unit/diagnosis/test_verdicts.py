"""Why a run makes no progress: the sentence for stacks as real trainings have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.diagnosis.known_waits import KNOWN_WAITS, KnownWait, WaitKind, find_channel, find_wait
from riseml.diagnosis.stacks import ProcessStacks, StackFrame, ThreadStack
from riseml.diagnosis.verdicts import Certainty, RunFacts, StallCause, diagnose

SITE = "/opt/venv/lib/python3.11/site-packages/"
C10D = f"{SITE}torch/distributed/distributed_c10d.py"
CALLER = f"_exception_logger.<locals>.wrapper {SITE}torch/distributed/c10d_logger.py:81"
LOADER = f"{SITE}torch/utils/data/dataloader.py"
REDUCE = f"all_reduce {C10D}:2810 {CALLER} train train.py:88"
LATER_REDUCE = REDUCE.replace("train.py:88", "train.py:93")
GATHER = f"all_gather {C10D}:3500 {CALLER} train train.py:93"
DATA = f"select /usr/lib/python3.11/selectors.py:415 _try_get_data {LOADER}:1243 __next__ {LOADER}:630 train data.py:41"
LOOP = "spin train.py:12 train train.py:80"
MEET = f"_create_c10d_store {SITE}torch/distributed/rendezvous.py:185 init_process_group {C10D}:1700 main train.py:5"
TF_MEET = f"ensure_initialized {SITE}tensorflow/python/eager/context.py:599 main train.py:7"
PS = f"join {SITE}tensorflow/python/training/server_lib.py:191 main train.py:9"
SAVE = f"save {SITE}torch/serialization.py:850 keep train.py:20"
LOCKED = f"_acquire {SITE}filelock/_unix.py:40 acquire {SITE}filelock/_api.py:300 fetch data.py:9"


def read_frames(text: str) -> tuple[StackFrame, ...]:
    """Return frames from functions and `FILE:LINE`, the innermost first."""
    words = text.split()
    places = [word.rpartition(":") for word in words[1::2]]
    return tuple(StackFrame(name, file, int(line)) for name, (file, _, line) in zip(words[::2], places, strict=True))


def make_process(job: str, stack: str, state: str = "S", channel: str = "", *, idle: bool = True) -> ProcessStacks:
    """Return the main process of a job; without a stack it runs no Python."""
    threads = (ThreadStack("MainThread", 7, read_frames(stack), idle),) if stack else ()
    return ProcessStacks(job, 7, 1, "python train.py", state, channel, threads=threads)


def repeat_sample(*processes: ProcessStacks, times: int = 3) -> Sequence[Sequence[ProcessStacks]]:
    """Return samples that are all the same."""
    return [processes] * times


def workers(*stacks: str) -> list[ProcessStacks]:
    """Return a worker for each stack."""
    return [make_process(f"worker.{number}", stack) for number, stack in enumerate(stacks, 1)]


ONE = make_process("train", LOOP)
FULL = RunFacts(disk_free=0)

CASES = [
    (
        workers(REDUCE, DATA, REDUCE),
        RunFacts(),
        StallCause.LEFT_LOOP,
        "worker.2 left the loop: it waits for data in DataLoader, __next__ (data.py:41) (3 of 3 samples); the others"
        " wait for it in all_reduce (train.py:88)",
    ),
    (
        [*workers(REDUCE), make_process("worker.2", LOOP, "R", idle=False)],
        RunFacts(),
        StallCause.LEFT_LOOP,
        "worker.2 left the loop: it computes in spin (train.py:12) (3 of 3 samples); worker.1 waits for it in"
        " all_reduce (train.py:88)",
    ),
    (
        workers(REDUCE, GATHER, REDUCE),
        RunFacts(),
        StallCause.ORDER,
        "worker.2 waits in all_gather (train.py:93), and the others wait in all_reduce (train.py:88): they do not call"
        " the same collectives in the same order",
    ),
    (
        workers(REDUCE, LATER_REDUCE),
        RunFacts(),
        StallCause.ORDER,
        "worker.1 waits in all_reduce (train.py:88), and worker.2 waits in all_reduce (train.py:93): they do not call"
        " the same collectives in the same order",
    ),
    (
        workers(REDUCE, REDUCE, REDUCE),
        RunFacts(),
        StallCause.COLLECTIVE,
        "all 3 ranks wait for each other in all_reduce (train.py:88): none is late, so that the network between them,"
        " or a rank outside of this experiment, is the cause",
    ),
    (
        workers(REDUCE, REDUCE),
        RunFacts(absent={"worker.3": "runs on gpu2, which does not answer"}),
        StallCause.ABSENT,
        "worker.3 runs on gpu2, which does not answer; the others wait for it in all_reduce (train.py:88)",
    ),
    (
        [make_process("master", TF_MEET), make_process("ps.1", PS, "T")],
        RunFacts(),
        StallCause.STOPPED,
        "ps.1 is stopped by a signal: SIGCONT lets process 7 of it go on; master waits for it in"
        " ensure_initialized (train.py:7)",
    ),
    (
        [make_process("master", TF_MEET), make_process("ps.1", PS)],
        RunFacts(),
        StallCause.MEETING,
        "master waits for peers that never come, in ensure_initialized (train.py:7): an address, or the number of jobs"
        " that it was given (TF_CONFIG, WORLD_SIZE), does not fit the jobs that run",
    ),
    (
        workers(MEET, LOCKED),
        RunFacts(),
        StallCause.MEETING,
        "worker.1 waits for worker.2 in init_process_group (train.py:5), and worker.2 does not come: it waits for a"
        " lock on a file in acquire (data.py:9) (3 of 3 samples)",
    ),
    (
        [*workers(REDUCE), make_process("worker.2", SAVE, "D", "rpc_wait_bit_killable")],
        RunFacts(),
        StallCause.KERNEL,
        "worker.2 waits in the kernel for a mounted folder (rpc_wait_bit_killable), in save (train.py:20), and cannot"
        " be ended before that answers; worker.1 waits for it in all_reduce (train.py:88)",
    ),
    (
        [make_process("train", "", "Z")],
        RunFacts(),
        StallCause.ENDED,
        "train has ended, and nothing has noticed it",
    ),
    (
        [make_process("train", SAVE)],
        FULL,
        StallCause.DISK_FULL,
        "the disk of OUTPUT_DIR is full (0 B free); train is in save (train.py:20)",
    ),
    (
        [*workers(REDUCE), replace(make_process("worker.2", LOOP), open_files=64, most_files=64)],
        RunFacts(),
        StallCause.OPEN_FILES,
        "worker.2 has 64 of 64 files open, and can open no more, in spin (train.py:12); worker.1 waits for it in"
        " all_reduce (train.py:88)",
    ),
    ([ONE], RunFacts(), StallCause.UNKNOWN, "train: it waits in spin (train.py:12) (3 of 3 samples)"),
    (
        [make_process("train", LOOP, "R", idle=False)],
        RunFacts(),
        StallCause.BUSY,
        "train: it computes in spin (train.py:12) (3 of 3 samples)",
    ),
    (
        [make_process("train", "read data.py:9", "S", "flock_lock_inode_wait")],
        RunFacts(),
        StallCause.LOCK,
        "train: it waits for a lock on a file in read (data.py:9) (3 of 3 samples)",
    ),
    (
        [make_process("train", "", "S", "do_wait")],
        RunFacts(),
        StallCause.CHILD,
        "train: it waits for a process that it has started (do_wait) (3 of 3 samples)",
    ),
    (
        [make_process("worker.1", LOOP), make_process("worker.2", LOCKED), make_process("worker.3", LOOP)],
        RunFacts(silent={"worker.3": 9.0}),
        StallCause.LOCK,
        "worker.2: it waits for a lock on a file in acquire (data.py:9) (3 of 3 samples); worker.3 and worker.1: it"
        " waits in spin (train.py:12) (3 of 3 samples)",
    ),
    ([], RunFacts(), StallCause.UNKNOWN, "nothing could be read of its processes"),
]


@pytest.mark.parametrize(("processes", "facts", "cause", "sentence"), CASES, ids=[str(at) for at in range(len(CASES))])
def test_the_cause_is_named_in_one_sentence(
    processes: list[ProcessStacks], facts: RunFacts, cause: StallCause, sentence: str
) -> None:
    told = diagnose(repeat_sample(*processes), facts)
    assert (told.cause, told.sentence) == (cause, sentence)


def test_what_moves_is_at_work_and_one_sample_is_a_possibility() -> None:
    samples = [workers(REDUCE, DATA), workers(DATA, LOOP), workers(LOOP, REDUCE)]
    assert diagnose(samples).cause is StallCause.WORKS
    steps = [[make_process("train", stack)] for stack in (DATA, SAVE, LOOP)]
    assert diagnose(steps).cause is StallCause.WORKS
    assert diagnose(repeat_sample(*workers(REDUCE, DATA), times=1)).certainty is Certainty.POSSIBLE
    assert diagnose(repeat_sample(*workers(REDUCE, DATA))).certainty is Certainty.LIKELY
    unread = [replace(process, threads=(), trouble="its stacks could not be read in time") for process in steps[2]]
    told = diagnose([steps[2], unread, steps[2]])
    assert told.sentence == "train: it waits in spin (train.py:12) (2 of 2 samples)"
    brief = make_process("train", SAVE, "D")
    assert diagnose([[brief], [replace(brief, state="S")]]).cause is StallCause.FILE


def test_the_loader_processes_of_a_rank_say_why_no_data_comes() -> None:
    main = make_process("worker.2", DATA)
    loaders = [replace(make_process("worker.2", LOCKED), pid=pid, parent=main.pid) for pid in (8, 9)]
    told = diagnose(repeat_sample(*workers(REDUCE), main, *loaders))
    assert told.culprits == ("worker.2",)
    text = "worker.2: 2 processes that it has started: it waits for a lock on a file in acquire (data.py:9)"
    assert text in told.evidence


def test_evidence_has_what_is_near_its_limit() -> None:
    facts = RunFacts(
        disk_free=1 << 30,
        memory={"worker.1": (99.0, 100.0), "worker.2": (9.0, 100.0)},
        throttled={"worker.1": 0.5, "worker.2": 0.1},
        traffic={"worker.1": 0.0},
    )
    told = diagnose(repeat_sample(*workers(REDUCE, REDUCE)), facts).evidence
    assert told[-3:] == (
        "worker.1 uses 99 B of 100 B of memory",
        "worker.1 has waited for its share of the processor for 50% of the time",
        "worker.1 moves 0 B/s over the network",
    )


@pytest.mark.parametrize("row", KNOWN_WAITS, ids=lambda row: f"{row.kind.value} {row.name}")
def test_each_known_wait_knows_its_examples_and_not_code_of_users(row: KnownWait) -> None:
    assert row.examples
    for function, file in row.examples:
        known = find_wait([StackFrame(function, file, 1)], is_idle=True)
        assert known is not None
        assert known[0] is row
        assert find_wait([StackFrame(function, "train.py", 1)], is_idle=True) is None
        assert find_wait([StackFrame(f"{function}_", "x.py", 1)], is_idle=True) is None


@pytest.mark.parametrize(
    ("channel", "kind"),
    [
        ("rpc_wait_bit_killable", WaitKind.FILE),
        ("request_wait_answer", WaitKind.FILE),
        ("locks_lock_inode_wait", WaitKind.LOCK),
        ("hrtimer_nanosleep", WaitKind.SLEEP),
        ("futex_wait_queue", WaitKind.LOCK),
        ("do_sys_poll", None),
        ("", None),
    ],
)
def test_functions_of_the_kernel_say_what_is_waited_for(channel: str, kind: WaitKind | None) -> None:
    known = find_channel(channel)
    assert (None if known is None else known[0]) is kind


STACKS = st.sampled_from(["", REDUCE, LATER_REDUCE, GATHER, DATA, LOOP, MEET, TF_MEET, PS, SAVE, LOCKED])
PROCESSES = st.builds(
    make_process,
    st.sampled_from(["master", "worker.1", "worker.2", "ps.1"]),
    STACKS,
    st.sampled_from("RSDTZ"),
    st.sampled_from(["", "do_wait", "futex_wait_queue", "rpc_wait"]),
    idle=st.booleans(),
)


@given(samples=st.lists(st.lists(PROCESSES, max_size=5), max_size=3))
def test_every_run_has_a_sentence_and_culprits_that_it_has(samples: list[list[ProcessStacks]]) -> None:
    told = diagnose(samples)
    assert told.sentence
    assert told.sentence == told.sentence.strip()
    jobs = {process.job for sample in samples for process in sample}
    assert set(told.culprits) <= jobs
    assert "  " not in told.sentence
