"""What Linux takes as one variable or one argument of a process: a text with more starts no job.

A command measures the variables that it passes on without the modules of `spec.config`, whose import takes longer than
the rest of the command.
"""

from __future__ import annotations

LONGEST = 131_071
"""Bytes of one text (MAX_ARG_STRLEN of execve(2), without the NUL character at its end)."""

MOST_TOGETHER = 2**21 - 2**17
"""Bytes of all texts of a process: a quarter of a stack of 8 MiB, less what an image sets. A riseml.yml has 1 MiB at
most."""

HINT = "put the text into a file of the project, and give the job the name of the file"


def measure_variable(name: str, value: str) -> int:
    """Return the bytes of a variable as the kernel counts them, without the NUL character."""
    return len(name) + 1 + len(value.encode(errors="surrogateescape"))


def describe_size(size: int) -> str:
    """Return what is wrong with a text of so many bytes."""
    return f"{size:,} bytes, and Linux takes {LONGEST:,} in one variable or argument"
