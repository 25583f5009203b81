"""The riseml.yml of a command, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import Riseml


def test_validate_describes_a_valid_file(riseml: Riseml) -> None:
    result = riseml("validate")
    assert result.code == 0
    assert result.out.startswith("riseml.yml is valid: project ai-toaster, 1 job (train)")
    assert json.loads(riseml("validate", "--json").out) == []


def test_validate_lists_the_jobs_of_every_combination(riseml: Riseml, folder: Path) -> None:
    roles = "{learner: {count: 1}, actor: {count: '{{n}}', resources: {gpus: '{{g}}'}}}"
    (folder / "riseml.yml").write_text(
        f"project: p\ntrain: {{image: x, run: a, roles: {roles}, parameters: {{n: [1, 2], g: 1}}}}\n"
    )
    assert riseml("validate").out.splitlines() == [
        "riseml.yml is valid: project p, 2 experiments, 1 at the same time",
        "  n=1: 2 jobs (learner.1, actor.1), 2 cpus, 2 GiB, 1 gpus",
        "  n=2: 3 jobs (learner.1, actor.1, actor.2), 3 cpus, 3 GiB, 2 gpus",
    ]
