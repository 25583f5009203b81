"""What Linux takes as one variable of a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from riseml.spec.scalars.text_sizes import LONGEST, describe_size, measure_variable


@pytest.mark.parametrize(
    ("name", "value", "size"), [("A", "", 2), ("A", "b", 3), ("A", "\u00e9", 4), ("A", "caf\udce9", 6)]
)
def test_a_variable_is_measured_in_bytes_with_its_name(name: str, value: str, size: int) -> None:
    assert measure_variable(name, value) == size


@pytest.mark.parametrize(("more", "starts"), [(0, True), (1, False)])
def test_the_kernel_takes_the_longest_text_and_no_longer_one(more: int, *, starts: bool) -> None:
    value = "x" * (LONGEST - len("A=") + more)
    assert measure_variable("A", value) == LONGEST + more
    try:
        subprocess.run([sys.executable, "-c", ""], env={"A": value}, check=True)
    except OSError:
        assert not starts
    else:
        assert starts


def test_the_sentence_has_both_sizes() -> None:
    assert describe_size(200_000) == "200,000 bytes, and Linux takes 131,071 in one variable or argument"
