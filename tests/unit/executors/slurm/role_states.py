"""The record of a role, as its supervisor writes it."""

from __future__ import annotations

import json

from riseml.base.names import JobName
from riseml.executors.slurm.gang_folder import GangFolder

ROLE = JobName("train")


def write_state(folder: GangFolder, record: dict[str, object]) -> None:
    """Write what the supervisor says of the role."""
    (folder.path / "state.json").write_text(json.dumps({"roles": {ROLE: record}}))
