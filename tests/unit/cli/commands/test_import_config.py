"""`import`: a riseml.yml from the file of another system."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import Riseml


def test_import_writes_a_riseml_yml_over_no_other_one(riseml: Riseml, folder: Path) -> None:
    assert riseml("import", "nothing.yaml").code == 3
    job = {"replicas": 1, "template": {"spec": {"containers": [{"image": "x", "command": ["true"]}]}}}
    manifest = {"kind": "PyTorchJob", "metadata": {"name": "x"}, "spec": {"pytorchReplicaSpecs": {"Master": job}}}
    (folder / "job.yaml").write_text(json.dumps(manifest))
    assert riseml("import", "job.yaml").code == 4, "there is a riseml.yml"
    made = riseml("import", "job.yaml", "-f", "new.yml")
    assert (made.code, made.out) == (0, "Wrote new.yml for project x. `riseml train` runs it.\n"), made.err
    assert riseml("validate", "-f", "new.yml").code == 0
