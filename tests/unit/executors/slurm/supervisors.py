"""A supervisor of a gang without a Slurm around it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from riseml.executors.slurm.gang_supervisor import GangSupervisor


def make_supervisor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> GangSupervisor:
    """Return the supervisor of a gang of two, which takes no signals of this process."""
    roles = [
        {"role": name, "part": part, "grace": 0.0, "srun": []} for name, part in (("a", "DECIDES"), ("b", "SERVES"))
    ]
    plan = {"token": "secret", "python": "python3", "prefix": [], "stop_grace": 1.0, "roles": roles}
    (folder / "gang.json").write_text(json.dumps(plan))
    monkeypatch.setattr("signal.set_wakeup_fd", lambda *_: -1)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    return GangSupervisor(str(folder))
