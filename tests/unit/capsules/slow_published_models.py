"""Exported manifests against the classes that Kubeflow publishes, in an environment of their own.

`P tests/unit/capsules/slow_published_models.py`; it installs two packages.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from riseml.capsules.kubeflow_files import PYTORCHJOB, TFJOB, KubeflowKind, write_kubeflow
from tests.unit.capsules.exported_runs import read, small_run

PACKAGES = ("kubernetes>=29,<32", "six", "retrying", "urllib3", "certifi", "python-dateutil", "setuptools")
PROGRAM = Path(__file__).with_name("published_models.py")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the published classes."""
    folder = tmp_path_factory.mktemp("published") / "venv"
    uv = str(Path(sys.executable).parent / "uv")
    found = folder / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", str(found)]
    for words in (
        [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
        [*install, *PACKAGES],
        [*install, "--no-deps", "kubeflow-training==1.9.4"],
    ):
        subprocess.run(words, check=True, timeout=600)
    return found


def validate(python: Path, kind: KubeflowKind, manifest: dict[str, Any]) -> str:
    """Return what is wrong with a manifest; empty: nothing."""
    done = subprocess.run(
        [python, "-P", PROGRAM, kind.kind], input=json.dumps(manifest), capture_output=True, text=True
    )
    return "" if done.returncode == 0 else done.stderr.splitlines()[-1]


@pytest.mark.parametrize(("kind", "framework"), [(TFJOB, "tensorflow"), (PYTORCHJOB, "pytorch")])
def test_a_manifest_is_valid_for_the_published_classes(python: Path, kind: KubeflowKind, framework: str) -> None:
    jobs = ("master", "worker.1", "worker.2", *(["ps.1"] if kind is TFJOB else []))
    manifest = read(write_kubeflow(small_run(*jobs, framework=framework), kind), f"{kind.kind.lower()}.yaml")
    assert validate(python, kind, manifest) == ""
    (container,) = manifest["spec"][kind.specs]["Worker"]["template"]["spec"]["containers"]
    container["volumeMounts"][0]["mountpath"] = "/x"
    assert "has an unknown key mountpath" in validate(python, kind, manifest)
    del container["volumeMounts"][0]["mountpath"], container["name"]
    assert "has no name" in validate(python, kind, manifest)
