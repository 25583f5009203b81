"""The order that the server writes for the wrapper of a role."""

from __future__ import annotations

from pathlib import Path

from riseml.base.names import HostName, JobName
from riseml.base.states import JobDuty
from riseml.executors.gangs import GangOrder, GangRole
from riseml.executors.slurm.executor import SlurmExecutor
from riseml.executors.slurm.gang_folder import GangFolder, GangKey
from riseml.job_programs.rank_launcher import TREE_MARKER
from riseml.model import Image, JobKey, Launch, Owner
from riseml.spec.config.types import Limits, Resources
from riseml.spec.pool.types import SlurmSpec

WORKER = JobName("worker.1")


def test_a_role_of_several_ranks_is_told_that_its_whole_tree_gets_sigterm(tmp_path: Path) -> None:
    """Else its launcher passes SIGTERM on, and each rank gets it twice."""
    executor = SlurmExecutor(HostName("slurm"), "5e17e4", SlurmSpec(str(tmp_path)))
    owner, image = Owner("paul", 1, 1), Image("python")
    launch = Launch(JobKey(4, WORKER, 2), "5e17e4", "paul.4", "w", image, (), (), Resources(), Limits(), 64, owner, "")
    role = GangRole(launch, JobDuty.DECIDES, 0.0)
    gang = GangOrder(4, 2, "paul.4", (role,), 10.0)
    order = executor._order_role(GangFolder(GangKey(4, 2), tmp_path), role, gang, "secret")
    assert order["environment"][TREE_MARKER] == "riseml-5e17e4-4-2/worker.1"
