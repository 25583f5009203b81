"""What the jobs of `system test` measure: products of matrices, memory and folders."""

from __future__ import annotations

import array
import os
import re
import signal
from typing import Any

import pytest

from riseml.job_programs import host_test
from riseml.job_programs.host_test import (
    StressOrder,
    count_wrong_rows,
    make_factors,
    measure_folder,
    measure_memory,
    stress_host,
)

SIZE = 48


def test_the_product_of_the_matrices_is_known_without_computing_it() -> None:
    left, right = make_factors(SIZE)
    product = array.array(
        "f",
        [
            sum(left[row * SIZE + at] * right[at * SIZE + column] for at in range(SIZE))
            for row in range(SIZE)
            for column in range(SIZE)
        ],
    )
    assert count_wrong_rows(product.tobytes(), SIZE) == 0
    product[5 * SIZE + 7] += 1
    assert count_wrong_rows(product.tobytes(), SIZE) == 1


def test_stress_stays_within_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = stress_host(StressOrder(rounds=2, seconds=0.3, cores=0.2, mib=4))
    assert (found["held"], found["wrong"], found["ended"]) == (4, 0, [])
    assert 0 < found["reached"] < 0.6, "a fifth of a core, and what the start of Python takes"
    assert re.fullmatch(r"(stress [12] of 2: 0\.\d\d cores, 4 MiB\n){2}", capsys.readouterr().out)
    several = stress_host(StressOrder(rounds=1, seconds=0.1, cores=2.5, mib=7))
    assert several["held"] == 6, "three processes with 2 MiB each"


def test_a_process_of_the_stress_that_dies_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(seconds: float, share: float, mib: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    monkeypatch.setattr(host_test, "load_core", die)
    found = stress_host(StressOrder(rounds=1, seconds=0.1, cores=1, mib=1))
    assert (found["ended"], found["held"]) == (["signal 9"], 0)


def test_memory_and_folders_give_back_what_was_written(tmp_path: Any) -> None:
    assert measure_memory(0, 2)[1] == 0
    written, read, right = measure_folder(str(tmp_path), 2)
    assert written > 0
    assert read > 0
    assert right
    assert list(tmp_path.iterdir()) == []
