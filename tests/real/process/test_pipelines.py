"""Runs that wait for other runs and read their outputs: the example's program, and what ends a wait."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rig import BASE, Rig, single

EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline"
WRITES = 'until [ -e "$OUTPUT_DIR/go" ]; do sleep 0.05; done; mkdir "$OUTPUT_DIR/model"; echo 7 > "$OUTPUT_DIR/model/w"'
READS = 'cat "$RISEML_INPUT_MODEL/w"; touch "$RISEML_INPUT_MODEL/x" || echo read-only'


@pytest.mark.parametrize("name", [pytest.param("docker_rig", marks=pytest.mark.engine), "process_rig"])
def test_the_program_of_the_example_makes_data_models_and_a_report(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    rig: Rig = request.getfixturevalue(name)
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    config = (project / "riseml.yml").read_text()
    (project / "riseml.yml").write_text(config.replace("image: python:3.11", f"image: {BASE}"))
    done = subprocess.run(
        [sys.executable, "pipeline.py"], cwd=project, env=rig.environ(), capture_output=True, text=True, check=False
    )
    assert (done.stdout.partition(":")[0], done.stderr) == ("rate 0.5", "")
    views = {view["id"]: view for view in rig.get("/v1/experiments", all="true")["experiments"]}
    report = rig.experiment(max(views, key=int))
    models = next(view for view in views.values() if view["type"] == "set")
    assert {member["after"][0] for member in models["experiments"]} == {min(views, key=int)}
    assert len(report["after"]) == 2


@pytest.mark.parametrize("name", [pytest.param("docker_rig", marks=pytest.mark.engine), "process_rig"])
def test_a_wait_outlives_the_server_and_its_input_is_complete_and_read_only(
    request: pytest.FixtureRequest, name: str
) -> None:
    rig: Rig = request.getfixturevalue(name)
    first = rig.submit(single(WRITES))["id"]
    reader = rig.submit(single(READS, inputs={"model": f"output://{first}/model"}))["id"]
    lost = rig.submit(single("true", inputs={"model": f"output://{first}/nothing"}))["id"]
    rig.wait_state(first, "RUNNING")
    waiting = rig.wait_state(reader, "PENDING")
    assert (waiting["reason"], waiting["message"]) == ("AFTER", f"waits for {first}")
    rig.kill()
    rig.start()
    told = f"it waits for {first} (RUNNING)"
    rig.wait("explained", lambda: rig.get(f"/v1/experiments/{reader}/explain")["summary"] == told or None)
    rig.go_file(first).touch()
    assert rig.wait_closed(reader)["state"] == "FINISHED"
    lines = [line.partition(" ")[2] for line in rig.lines(reader)]
    assert "7" in lines
    assert ("read-only" in lines) is (name == "docker_rig")
    ended = rig.wait_closed(lost)
    assert (ended["state"], ended["reason"], ended["exit_code"]) == ("FAILED", "NO_INPUT", None)
    assert ended["message"].endswith(f"/toaster/{first} has no nothing")
    refused = rig.post("/v1/experiments", rig.submission(single("true", inputs={"m": f"output://{first}/nothing"})))
    assert refused.status_code == 404
    assert refused.json()["error"]["hint"] == (
        f"`riseml ls output://{first}` shows what is there; `riseml rerun {first}` makes it again"
    )
    failed = rig.submit(single("exit 3"))["id"]
    rig.wait_closed(failed)
    refused = rig.post("/v1/experiments", rig.submission(single("true"), after=[failed]))
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "Conflict")
    assert rig.wait_closed(rig.submit(single("true"), after=[f"{failed}:any"])["id"])["state"] == "FINISHED"
