"""Lines that are open at the same time come whole and once, with their reports and values."""

from __future__ import annotations

from tests.support.open_lines import FILES, check_readers, configure
from tests.support.rig import Rig


def test_lines_of_several_jobs_that_are_open_at_the_same_time_are_whole_for_every_reader(shared_rig: Rig) -> None:
    name = shared_rig.submit(configure(), FILES)["id"]
    check_readers(shared_rig, name)
