"""Tests of riseml.job_programs.process_facts: what /proc and py-spy say, in words."""

from __future__ import annotations

import pytest

from riseml.job_programs.process_facts import (
    choose_options,
    explain_failure,
    find_most_files,
    find_rank,
    is_own_program,
    join_command,
    may_be_python,
    parse_stat,
)

DENIED = "Permission Denied: Try running again with elevated permissions by going 'sudo env'\n"
NO_PYTHON = "Error: Failed to find python version from target process\n\nStack backtrace:\n   0: anyhow\n"
OTHER = "Error: x\n\nCaused by:\n    0: Failed to suspend process\n    1: no luck\n\nStack backtrace:\n 0: x\n"


def test_a_name_with_brackets_and_spaces_does_not_move_the_fields() -> None:
    row = parse_stat(b"7 (a) R 9 (b) S 3 7 7 0 -1")
    assert (row["pid"], row["name"], row["state"], row["parent"]) == (7, "a) R 9 (b", "S", 3)
    for text in (b"", b"7 (a)", b"x (a) S 3"):
        with pytest.raises(ValueError):
            parse_stat(text)


@pytest.mark.parametrize(
    ("environ", "rank"),
    [
        (b"A=1\0RANK=3\0", 3),
        (b"OMPI_COMM_WORLD_RANK=12\0HOROVOD_RANK=1", 12),
        (b"RANK=\0", None),
        (b"RANK=-1\0", None),
        (b"RANK=" + b"9" * 4000, None),
        (b"", None),
    ],
)
def test_a_rank_is_a_small_number_of_a_launcher(environ: bytes, rank: int | None) -> None:
    assert find_rank(environ) == rank


def test_a_command_line_is_one_short_line() -> None:
    assert join_command(b"python\0train.py\0\0", "python") == "python train.py"
    assert join_command(b"", "kworker") == "kworker"
    assert len(join_command(b"a" * 10_000, "a")) == 300


def test_only_what_certainly_runs_no_python_is_passed_over() -> None:
    assert may_be_python(b"/venv/bin/python3.12\0x.py", b"")
    assert may_be_python(b"./server", b"7f00-7f01 r-xp 0 00:00 0 /usr/lib/libpython3.11.so.1.0\n")
    assert may_be_python(b"./server", None)
    assert not may_be_python(b"sh\0-c\0echo python", b"")
    assert not may_be_python(b"sleep\x0060", b"7f00-7f01 r-xp 0 00:00 0 /usr/bin/sleep\n")


@pytest.mark.parametrize(
    ("cmdline", "is_own"),
    [
        (b"python3\0-c\0from riseml.job_programs.event_reader import run; run()", True),
        (b"python3\0.riseml/event_reader.py", True),
        (b"python3\0-IS\0/shared/gangs/5e7a/4/a1/event_reader.py", True),
        (b"python3\0event_reader.py", False),
    ],
)
def test_programs_of_riseml_are_known(cmdline: bytes, *, is_own: bool) -> None:
    assert is_own_program(cmdline) == is_own


def test_a_process_that_cannot_be_stopped_is_read_as_it_is() -> None:
    assert "--nonblocking" in choose_options("T", native=True, variables=False)
    assert "--native" not in choose_options("D", native=True, variables=False)
    assert choose_options("S", native=True, variables=True)[-2:] == ["--native", "--locals"]


@pytest.mark.parametrize(
    ("errors", "yama", "words"),
    [
        (NO_PYTHON, "", ""),
        ("Error: No python processes found in process 7 or any of its subprocesses\n", "", ""),
        (DENIED, "1\n", "kernel.yama.ptrace_scope is 1 on this host"),
        (DENIED, "0\n", "seccomp or AppArmor"),
        (DENIED, "", "seccomp or AppArmor"),
        ("Error: x\nCaused by: No such process (os error 3)", "", "it has just ended"),
        (OTHER, "", "py-spy says: no luck"),
        ("", "", "py-spy ended without a word"),
    ],
)
def test_a_refusal_names_the_setting_that_forbids_it(errors: str, yama: str, words: str) -> None:
    reason = explain_failure(errors, yama)
    assert words in reason
    assert bool(reason) == bool(words)


def test_the_limit_of_open_files_is_the_soft_one() -> None:
    head = b"Limit                     Soft Limit           Hard Limit           Units     \n"
    assert (
        find_most_files(head + b"Max open files            64                   1024                 files     \n")
        == 64
    )
    assert (
        find_most_files(head + b"Max open files            unlimited            unlimited            files     \n") == 0
    )
    assert find_most_files(b"") == 0
