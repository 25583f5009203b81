"""An exported run on a real engine, without riseml: docker-compose reads the files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.command import run_riseml
from tests.support.rig import Rig, gang
from tests.support.waiting import DEADLINE

MASTER = 'echo "$LR $(cat lines.txt made.txt) $TF_CONFIG" > "$OUTPUT_DIR/said"; ls "$DATA_DIR"; (exit 7) | cat'


def test_compose_runs_the_same_gang_and_ends_with_the_exit_code_of_the_master(docker_rig: Rig, tmp_path: Path) -> None:
    rig = docker_rig
    config = gang({"master": MASTER}, install=["echo made &> made.txt"], parameters={"lr": 0.5})
    rig.submit(config, {"lines.txt": "one\n"})
    found = rig.wait_closed("1")
    assert found["state"] == "FAILED"
    said = Path(found["output"], "said").read_text()
    (tmp_path / "data" / "digits").mkdir(parents=True)
    environ = rig.environ() | {"RISEML_DATA": str(tmp_path / "data")}
    done = run_riseml(["export", f"{found['output']}/.riseml", "there", "--compose"], tmp_path, environ)
    assert done.returncode == 0, done.stderr
    assert run_riseml(["export", "1", "there", "--compose"], tmp_path, environ).returncode == 4, "it is there already"
    assert run_riseml(["export", "1", "--compose", "--sh"], tmp_path, environ).returncode == 2
    assert run_riseml(["export", "1", "--pytorchjob"], tmp_path, environ).returncode == 2
    rig.stop()
    project = f"riseml-export-{os.getpid()}"
    script = tmp_path / "there" / "run.sh"
    script.write_text(script.read_text().replace("COMPOSE_PROJECT_NAME=riseml-1", f"COMPOSE_PROJECT_NAME={project}"))
    try:
        ran = subprocess.run([script], env=environ, capture_output=True, text=True, check=False, timeout=3 * DEADLINE)
    finally:
        for image in ("master", "worker-1", "worker-2", "ps-1"):
            subprocess.run(["docker", "rmi", "-f", f"{project}_{image}"], env=environ, capture_output=True, check=False)
    assert ran.returncode == 7, ran.stdout + ran.stderr
    again = (tmp_path / "there" / "output" / "said").read_text()
    for at, own in enumerate(("worker-1", "worker-2", "ps-1"), start=2223):
        said = said.replace(f"{own}:2222", f"{own}:{at}")
    assert again == said
    assert "digits" in ran.stdout
