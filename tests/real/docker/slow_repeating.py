"""The main example again from its capsule alone, and by docker compose: minutes, and not part of `make test`.

`python -m pytest tests/real/docker/slow_repeating.py` runs it; docs/testing.md says what it needs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.real.e2e.console import Console
from tests.real.frameworks.test_toaster import EXAMPLE, find_cache

LEAST, MOST_APART = 0.85, 0.05  # of the accuracy: asynchronous training ends a little differently each time


def find_accuracy(text: str) -> float:
    (found,) = re.findall(r"test accuracy: ([0-9.]+)", text)
    return float(found)


def test_ai_toaster_runs_again_from_its_capsule_and_under_docker_compose(tmp_path: Path, engine_url: str) -> None:
    data = find_cache() / "data"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", data / "digits"], check=True)
    settings = {"RISEML_DATA": str(data), "RISEML_BUILD_NETWORK": "host"}
    first = Console(tmp_path / "first", engine_url, EXAMPLE, **settings)
    trained = first.run("train", "-p", "epochs=3")
    assert (trained.code, trained.err) == (0, ""), trained.out
    capsule = tmp_path / "capsule"
    shutil.copytree(Path(first.ask("status", trained.id)["output"]) / ".riseml", capsule)
    first.close()
    (tmp_path / "empty").mkdir()
    other = Console(tmp_path / "other", engine_url, tmp_path / "empty", **settings)
    again = other.run("rerun", str(capsule))
    assert again.code == 0, again.out + again.err
    exported = other.run("export", str(capsule), "there", "--compose")
    assert exported.code == 0, exported.err
    other.close()
    composed = run_compose(tmp_path / "empty" / "there", engine_url, data)
    accuracies = [find_accuracy(text) for text in (trained.out, again.out, composed)]
    assert min(accuracies) >= LEAST
    assert max(accuracies) - min(accuracies) <= MOST_APART, accuracies


def run_compose(folder: Path, engine_url: str, data: Path) -> str:
    """Run an export under a project name of its own, and return what it prints."""
    project = f"riseml-slow-{os.getpid()}"
    script = folder / "run.sh"
    script.write_text(re.sub(r"COMPOSE_PROJECT_NAME=\S+", f"COMPOSE_PROJECT_NAME={project}", script.read_text()))
    environ = {**os.environ, "DOCKER_HOST": engine_url, "RISEML_DATA": str(data)}
    try:
        done = subprocess.run([script], env=environ, capture_output=True, text=True, check=False, timeout=900)
    finally:
        for image in ("master", "worker-1", "worker-2", "ps-1"):
            subprocess.run(["docker", "rmi", "-f", f"{project}_{image}"], env=environ, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
