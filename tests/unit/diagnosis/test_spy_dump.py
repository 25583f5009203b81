"""Tests of riseml.diagnosis.spy_dump: py-spy's JSON as records, whatever a job has written into its names."""

from __future__ import annotations

import json

import pytest

from riseml.diagnosis.spy_dump import MOST_FRAMES, MOST_THREADS, UnreadableDump, parse_dump, shorten
from riseml.diagnosis.stacks import StackFrame, ThreadStack, Variable


def make_frame(name: str = "step", **other: object) -> dict[str, object]:
    """Return a frame as py-spy 0.4.3 prints it."""
    frame = {"name": name, "filename": "/code/train.py", "module": None, "short_filename": "train.py", "line": 8}
    return {**frame, "locals": None, "is_entry": False, "is_shim_entry": False, **other}


def make_thread(name: str | None, *frames: dict[str, object], **other: object) -> dict[str, object]:
    """Return a thread as py-spy 0.4.3 prints it."""
    thread = {"pid": 7, "thread_id": 139831, "thread_name": name, "os_thread_id": 7 if name else 9, "active": False}
    return {**thread, "owns_gil": False, "frames": list(frames), "process_info": None, **other}


def parse(*threads: dict[str, object]) -> tuple[ThreadStack, ...]:
    """Return what the parser makes of these threads."""
    return parse_dump(json.dumps(threads).encode())


def test_the_main_thread_comes_first_and_each_frame_says_where_it_is() -> None:
    library = "/usr/lib/libc.so.6"
    native = make_frame("poll", filename=library, module=library, line=0)
    local = {"name": "batch", "addr": 1, "arg": True, "repr": "32"}
    main = make_thread("MainThread", native, make_frame(locals=[local]), active=True, owns_gil=True)
    assert parse(make_thread(None, make_frame("spin"), os_thread_id=8), main) == (
        ThreadStack(
            "MainThread",
            7,
            (
                StackFrame("poll", library, 0, is_native=True),
                StackFrame("step", "/code/train.py", 8, variables=(Variable("batch", "32"),)),
            ),
            is_idle=False,
            holds_gil=True,
        ),
        ThreadStack("", 8, (StackFrame("spin", "/code/train.py", 8),), is_idle=True),
    )


def test_names_cannot_rewrite_a_terminal_and_have_a_longest_size() -> None:
    frame = make_frame("\x1b[2Jnice\nline\u202e", filename="/code/" + "a" * 10_000 + ".py")
    (thread,) = parse(make_thread("\x07" * 5000, frame))
    assert thread.frames[0].function == "\\x1b[2Jnice\\nline\\u202e"
    assert len(thread.frames[0].file) == 500
    assert len(thread.name) == 200
    assert shorten("ab\tc", 4) == "ab c"
    assert shorten("abcdef", 5) == "ab..."


def test_a_deep_stack_keeps_its_innermost_frames_and_many_threads_are_cut() -> None:
    frames = [make_frame(f"call_{depth}") for depth in range(MOST_FRAMES + 50)]
    threads = parse(*(make_thread(None) for _ in range(MOST_THREADS + 3)), make_thread("MainThread", *frames))
    assert (len(threads), threads[0].name) == (MOST_THREADS, "MainThread")
    assert [threads[0].frames[at].function for at in (0, -1)] == ["call_0", f"call_{MOST_FRAMES - 1}"]


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '[{"frames": 3}]', '[{"frames": [{}], "active": true, "owns_gil": true}]', "[" * 100_000, "\xff"],
)
def test_anything_else_is_no_dump(text: str) -> None:
    if text == "{}":
        text = '{"a": 1}'
    with pytest.raises(UnreadableDump, match="something else than stacks"):
        parse_dump(text.encode("latin-1"))
