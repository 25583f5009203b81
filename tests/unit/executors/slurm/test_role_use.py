"""What a role uses, from the records that it writes for the server."""

from __future__ import annotations

import json
import os
import time

import pytest

from riseml.executors.base import NotThere
from riseml.executors.slurm.gang_folder import GangFolder, GangFolders
from riseml.executors.slurm.role_access import RoleMeter, read_processor_time
from riseml.executors.slurm.role_use import UseRecorder
from tests.unit.executors.slurm.role_states import ROLE, write_state


def test_what_a_role_uses_is_read_from_its_records_while_it_runs(folder: GangFolder) -> None:
    write_state(folder, {"started_at": 1.0, "host": "n1", "door": 1, "node": "n1"})
    meter = RoleMeter(folder, ROLE)
    assert meter.read_use() is None
    recorder = UseRecorder(str(folder.path), ROLE, {"every": 0.5})
    recorder.record_use(os.getppid())
    sample = meter.read_use()
    assert sample is not None
    assert (sample.mem_used > 1 << 20, sample.mem_total, sample.gpu) == (True, 100 << 20, None)
    assert meter.read_use() is None, "there is nothing new"
    assert read_processor_time(folder, ROLE) > 0
    (machine,) = GangFolders(folder.path.parents[1]).list_machines(4)
    assert machine["system"] == "Linux"
    late = {**folder.read_use(ROLE), "at": time.time() - 3600}
    (folder.path / f"{ROLE}.use").write_text(json.dumps(late))
    with pytest.raises(NotThere):
        read_processor_time(folder, ROLE)
    write_state(folder, {"started_at": 1.0, "finished_at": 2.0})
    with pytest.raises(NotThere):
        meter.read_use()
