"""Progress bars in a log: the last state of each is kept, and no other line is lost, however the log is cut."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import JobName
from riseml.executors.logs.frames_after import FramesAfter
from riseml.model import Frame, JobKey
from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.logs.thinned_bars import BarRule, BarThinner

KEY = JobKey(4, JobName("master"), 1)


def bar(done: int, label: str = "") -> str:
    return f"{label}{done:3}%|###   | {done}/100 [00:01<00:01, 3.40it/s]"


def keras(done: int) -> str:
    return f"{done}/100 [=====>........] - ETA: 1s - loss: 0.{done}"


def cut(output: str) -> list[Frame]:
    """Return a frame for each line and for each state of a bar, each with a time of its own."""
    pieces = [piece for piece in re.split(r"(?=\r)|(?<=\n)", output) if piece]
    return [Frame(f"2026-08-31T07:23:40.{at:03}Z", 1, piece.encode()) for at, piece in enumerate(pieces)]


def thin(frames: list[Frame], rule: BarRule = BarRule.LAST) -> list[Frame]:
    thinner = BarThinner(rule)
    return [*(passed for frame in frames for passed in thinner.thin_frames([frame])), *thinner.flush()]


def join(frames: list[Frame]) -> str:
    return b"".join(frame.data for frame in frames).decode()


@pytest.mark.parametrize(
    ("output", "left"),
    [
        ("".join(f"\r{bar(done)}" for done in range(101)) + "\n", f"\r{bar(100)}\n"),
        ("".join(f"{keras(done)}\n" for done in range(1, 101)) + "Epoch 2/3\n", f"{keras(100)}\nEpoch 2/3\n"),
        (f"{keras(99)}\n{keras(100)}\n{keras(1)}\n{keras(2)}\n", f"{keras(100)}\n{keras(2)}\n"),
        (
            f"{keras(99)}\n" + 2 * f"{keras(100)}\n" + f"{keras(100)} - epoch 3\n",
            2 * f"{keras(100)}\n" + f"{keras(100)} - epoch 3\n",
        ),
        (f"{keras(1)}\nloss is nan\n{keras(2)}\n", f"{keras(1)}\nloss is nan\n{keras(2)}\n"),
        (f"\r{bar(1)}\r{bar(2)}\rstopped by hand\r{bar(3)}\n", f"\r{bar(2)}\rstopped by hand\r{bar(3)}\n"),
        (f"\r{bar(1, 'a')}\r{bar(2, 'b')}\n", f"\r{bar(1, 'a')}\r{bar(2, 'b')}\n"),
        ("step 1/10\nstep 2/10\n", "step 1/10\nstep 2/10\n"),
        ("one\rtwo\rthree\n", "one\rtwo\rthree\n"),
    ],
)
def test_of_each_bar_the_last_state_is_left(output: str, left: str) -> None:
    assert join(thin(cut(output))) in (left, left.replace(f"\r{bar(100)}", f"\r{bar(99)}\r{bar(100)}"))
    assert join(thin(cut(output), BarRule.ALL)) == output


def test_a_line_whose_end_comes_as_a_frame_of_its_own_is_thinned() -> None:
    """Python writes the text of `print` and its end apart where it does not buffer."""
    frames = [
        frame for at in range(9) for frame in (Frame(f"t{at}", 1, keras(at).encode()), Frame(f"t{at + 1}", 1, b"\n"))
    ]
    assert join(thin(frames)) == f"{keras(8)}\n"


def test_states_in_one_frame_are_thinned() -> None:
    """Docker gives 16 KiB of an open line as one frame, and cuts a state in two."""
    output = "".join(f"\r{bar(done)}" for done in range(50)).encode()
    left = thin([Frame("t", 2, output[:1000]), Frame("t", 2, output[1000:]), Frame("t", 2, b"\n")])
    assert [frame.at for frame in left] == ["t"] * 3
    assert bar(49) in join(left)
    assert len(join(left)) < len(output) / 5


def test_lines_that_patterns_search_stay() -> None:
    output = "".join(f"{keras(done)}\n" for done in range(1, 10))
    assert join(thin(cut(output), BarRule.LAST_IN_LINE)) == output
    drawn = "".join(f"\r{bar(done)}" for done in range(10))
    assert join(thin([*cut(drawn), Frame("t", 1, b"\n")], BarRule.LAST_IN_LINE)) == f"\r{bar(9)}\n"


def test_a_bar_on_one_stream_and_lines_on_the_other_keep_their_order() -> None:
    frames = [Frame(f"t{at}", 2 - at % 2, f"\r{bar(at)}".encode() if at % 2 == 0 else b"loss\n") for at in range(6)]
    assert thin(frames) == frames


PIECES = st.lists(
    st.one_of(
        st.tuples(st.just("bar"), st.integers(0, 100)),
        st.tuples(st.just("keras"), st.integers(0, 100)),
        st.tuples(st.just("text"), st.sampled_from(["loss 0.3", "", "Epoch 1/3", "step 2/9", "50% of it", "a/b 3/4"])),
    ),
    max_size=30,
)


def write_piece(kind: str, what: int | str) -> bytes:
    if kind == "text":
        return f"\n{what}\n".encode()
    return f"\r{bar(int(what))}".encode() if kind == "bar" else f"\n{keras(int(what))}\n".encode()


@given(
    pieces=PIECES,
    cuts=st.lists(st.integers(0, 5000), max_size=12),
    killed_at=st.integers(0, 60),
    same=st.integers(1, 4),
    batch=st.integers(1, 7),
)
def test_no_line_that_is_no_bar_is_lost_or_repeated(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[tuple[str, int | str]],
    cuts: list[int],
    killed_at: int,
    same: int,
    batch: int,
) -> None:
    """The first server is killed after some frames, and the next one goes on where the store says. Some frames have one
    time.
    """
    output = b"".join(write_piece(kind, what) for kind, what in pieces) + b"\n"
    ends = {at + 1 for at, byte in enumerate(output) if byte == ord("\n")}
    places = sorted({0, len(output), *ends, *(place % len(output) for place in cuts)})
    host = [
        Frame(f"2026-08-31T07:23:40.{at // same:03}Z", 1, output[start:end])
        for at, (start, end) in enumerate(itertools.pairwise(places))
    ]
    folder = tmp_path_factory.mktemp("logs")
    for last in (killed_at, len(host)):
        logs = LogStore(folder)
        cursor = logs.find_cursor(KEY)
        thinner = BarThinner()
        thinner.forget(frozenset(stream for stream, place in cursor.positions.items() if place.goes_on))
        new = FramesAfter(cursor).keep_new(host[:last])
        for start in range(0, len(new), batch):
            logs.append_frames(KEY, thinner.thin_frames(new[start : start + batch]))
    logs.append_frames(KEY, thinner.flush())
    logs.finish_job(KEY)
    states = [text for line in read_all_lines(logs, KEY.experiment) for text in line.text.decode().split("\r")]
    texts = [str(what) for kind, what in pieces if kind == "text" and what]
    assert [text for text in states if text in set(texts)] == texts
    drawn = [write_piece(kind, what).strip(b"\r\n").decode() for kind, what in pieces if kind != "text"]
    assert {state for state in states if "%|" in state or "ETA" in state} <= set(drawn)
    assert not drawn or drawn[-1] in states
