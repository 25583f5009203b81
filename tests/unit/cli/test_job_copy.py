"""`riseml cp` into a job: what the job's own shell answers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

import pytest

from riseml.cli import job_copy
from riseml.cli.job_copy import JobPath
from riseml.client.exchange import Address
from riseml.errors import RisemlError


def test_a_program_in_place_of_the_shell_takes_no_memory_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def print_without_end(
        _address: Address, _place: JobPath, _script: list[str], sink: Callable[[bytes], object]
    ) -> None:
        for piece in repeat(b"A" * 1024, 1000):
            taken.append(piece)
            sink(piece)

    monkeypatch.setattr(job_copy, "_run_tar", print_without_end)
    with pytest.raises(RisemlError, match=r"the shell of 4\.train does not do what it is asked"):
        job_copy._ask_job(Address(), JobPath("4.train", "/tmp"), ["look"])
    assert len(taken) < 10
