"""What the output of jobs tells about their progress, however it comes in pieces."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.server.reconcile.progress_tracker import ProgressTracker

KEY = JobKey(4, JobName("master"), 1)


class Clock:
    """Seconds that grow by one with each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def read(pieces: list[bytes], stream: int = 2) -> tuple[float, float] | None:
    tracker = ProgressTracker(Clock())
    for piece in pieces:
        tracker.note_frames(KEY, [Frame("t", stream, piece)])
    progress = tracker.find_job(KEY)
    return None if progress is None else (progress.amount, progress.of)


def draw(done: int) -> bytes:
    return f"\r{done:3}%|███       | {done}/100 [00:{done % 60:02}<02:43,  3.40it/s]".encode()


@given(cuts=st.lists(st.integers(1, 400), max_size=20))
def test_a_bar_is_read_however_its_states_are_cut(cuts: list[int]) -> None:
    output = b"".join(map(draw, range(8)))
    places = sorted({0, len(output), *(cut % len(output) for cut in cuts)})
    pieces = [output[start:end] for start, end in itertools.pairwise(places)]
    assert read([draw(0), *pieces]) == (7, 100)


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        ([b'\x1eriseml.report {"riseml.done": 450.0, "riseml.of": 1000.0}\n'], (450, 1000)),
        ([b'epoch 2\x1eriseml.report {"riseml.done": 4, "riseml.of": 1e3}\n', b"Epoch 3/10\n"], (4, 1000)),
        ([b'riseml.report {"riseml.done": 5, "riseml.of": 4}\n'], None),
        ([b'riseml.report {"riseml.done": nan, "riseml.of": 4}\n'], None),
        ([b"step 1/10\nstep 2/10\n", b"step 3/", b"10\n"], (3, 10)),
        ([b"step 1/10\n", b"loss 0.3\n" * 20_000 + b"step 2/10\n"], (2, 10)),
        ([b"\xff\xfe step 1/10\n", b"\x00 step 2/10\n"], (2, 10)),
        ([b"x" * 100_000, b"step 1/10\n", b"step 2/10\n"], (2, 10)),
        ([b"loss 0.3\n"] * 3, None),
    ],
)
def test_output_tells_how_much_is_done(pieces: list[bytes], shown: tuple[float, float] | None) -> None:
    assert read(pieces, stream=1) == shown


def test_a_job_that_is_gone_is_forgotten() -> None:
    tracker = ProgressTracker(Clock())
    tracker.note_frames(KEY, [Frame("t", 1, b"step 1/10\nstep 2/10\n")])
    tracker.drop_jobs(frozenset({KEY}))
    assert tracker.find_job(KEY) is not None
    tracker.drop_jobs(frozenset())
    assert tracker.find_job(KEY) is None


def test_the_last_report_of_some_output_tells_steps_and_rates() -> None:
    """However its lines are cut; the clock grows by one second and more with each piece."""
    tracker = ProgressTracker(Clock())
    for step in range(20):
        whole = f'\x1eriseml.report {{"step": {step}, "samples_per_second": 128.0}}\n'
        head = f'{whole}riseml.report {{"step": {step}'.encode()
        tracker.note_frames(KEY, [Frame("t", 1, head)])
        tracker.note_frames(KEY, [Frame("t", 1, b', "loss": 1}\n')])
    found = tracker.find_rates(KEY)
    assert [rate.unit for rate in found] == ["step", "sample"]
    assert 0 < found[0].per_second <= 1
    assert found[1].per_second == 128
    tracker.drop_jobs(frozenset())
    assert tracker.find_rates(KEY) == ()
