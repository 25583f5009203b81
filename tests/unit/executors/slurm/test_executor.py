"""What the executor of a cluster orders: the start of a role, and the end of a gang on a full shared folder."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import HostName, JobName
from riseml.base.states import JobDuty
from riseml.control.actions import Signal
from riseml.executors.gangs import GangRequest, GangRole
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
    gang = GangRequest(4, 2, "paul.4", (role,), 10.0)
    order = executor._order_role(GangFolder(GangKey(4, 2), tmp_path), role, gang, "secret")
    assert order["environment"][TREE_MARKER] == "riseml-5e17e4-4-2/worker.1"


@pytest.mark.parametrize("signal_", [Signal.TERM, Signal.KILL])
def test_a_kill_on_a_full_shared_folder_cancels_the_job_in_slurm(
    signal_: Signal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "orders")

    executor = SlurmExecutor(HostName("cluster"), "5e7a" * 8, SlurmSpec(folder=str(tmp_path)))
    key = JobKey(4, JobName("train"), 1)
    folder = executor._folders.find_gang(key)
    folder.make()
    folder.write_gang({"token": "secret"}, {key.job: {}})
    cancelled: list[Path] = []
    monkeypatch.setattr(GangFolder, "order_stop", refuse)
    monkeypatch.setattr(executor, "_cancel", lambda gang: cancelled.append(gang.path))
    if signal_ is Signal.TERM:
        with pytest.raises(EngineError, match="No space left on device"):
            executor.stop(key, signal_)
    else:
        executor.stop(key, signal_)
    assert cancelled == ([folder.path] if signal_ is Signal.KILL else [])
    executor.close()
