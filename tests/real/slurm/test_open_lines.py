"""Lines of roles on nodes that are open at the same time come whole and once, as with the other executors."""

from __future__ import annotations

from tests.support.open_lines import FILES, check_readers, configure
from tests.support.rig import Rig


def test_lines_of_several_roles_that_are_open_at_the_same_time_are_whole_for_every_reader(slurm_rig: Rig) -> None:
    name = slurm_rig.submit(configure(), FILES)["id"]
    check_readers(slurm_rig, name)
