"""Images like those of Alpine: busybox has the shell and all programs, and there is no bash."""

from __future__ import annotations

import io

import docker

from tests.real.docker.test_outputs import find_said, list_output
from tests.support.engine_builds import EngineBuilds
from tests.support.rig import Rig, filter_entries, single
from tests.support.waiting import DEADLINE, wait_for

WRITES = """
import pathlib, riseml
for path in ("runs/a", "~/results/b", "~/.cache/c", "/tmp/scratch"):
    place = pathlib.Path(path).expanduser()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(path)
size = pathlib.Path("log.csv").stat().st_size
pathlib.Path("log.csv").write_text("y" * size)
riseml.report(loss=1.5)
"""
PROJECT = {"write.py": WRITES, "log.csv": "x" * 100, "kept.csv": "x"}


def test_sh_runs_the_lines_and_what_they_wrote_is_found(shared_docker_rig: Rig, busybox_image: str) -> None:
    rig = shared_docker_rig
    run = ["cat /opt/x", "python3 write.py", "false | true", "sleep 600 &"]
    config = single(run, image=busybox_image, install=["echo step; echo made >/opt/x"])
    name = rig.submit(config, PROJECT)["id"]
    found = rig.wait_closed(name)
    assert found["state"] == "FINISHED"
    lines = [entry["text"] for entry in filter_entries(rig.logs(name), "line") if entry["id"].endswith(".train")]
    assert set(lines) >= {
        "riseml: there is no bash, so sh runs these lines: the exit code of a pipe is that of its last command",
        "made",
    }
    assert "[riseml: the script has ended, and so ends what it left in the background: sleep 600" in "".join(lines)
    assert sorted(found["written"]["lost_names"]) == ["log.csv", "runs/...", "~/results/..."]
    (said,) = find_said(rig, name)[-1:]
    assert 'write `outputs: [log.csv, runs, "~/results"]` below train' in said
    job = next(job for job in found["jobs"] if job["name"] == "train")
    assert job["shell"] == "sh"
    assert found["metrics"][0]["last"] == 1.5


def test_a_kill_reaches_each_process_and_what_it_writes_is_kept(shared_docker_rig: Rig, busybox_image: str) -> None:
    rig = shared_docker_rig
    run = """trap 'echo saved >model.pt; exit 0' TERM; touch "$OUTPUT_DIR/ready"; sleep 600 & wait"""
    name = rig.submit(single(run, image=busybox_image, outputs=["*.pt"], stop_grace=20))["id"]
    wait_for("the job runs", rig.go_file(name).with_name("ready").exists, DEADLINE)
    rig.post(f"/v1/experiments/{name}/kill")
    found = rig.wait_closed(name)
    assert list_output(found) == {"ready": 0, "model.pt": 6}


def test_a_missing_bash_is_advised(shared_docker_rig: Rig, busybox_image: str) -> None:
    name = shared_docker_rig.submit(single("true", image=busybox_image, shell="bash"))["id"]
    found = shared_docker_rig.wait_closed(name)
    assert found["jobs"][-1]["exit_code"] == 127
    assert "`apk add bash`" in found["advice"]


def test_install_steps_keep_the_torch_of_the_image(builds: EngineBuilds, engine_url: str, busybox_image: str) -> None:
    base = f"riseml-test/busybox-torch:{builds.server[:12]}"
    folder = "/usr/lib/python3/dist-packages/torch-2.0.1+cpu.dist-info"
    text = f"FROM {busybox_image}\nRUN mkdir {folder} && touch {folder}/METADATA\n"
    with docker.APIClient(base_url=engine_url, version="auto") as api:
        list(api.build(fileobj=io.BytesIO(text.encode()), tag=base, rm=True, decode=True))
        try:
            lines = builds.make('cat "$PIP_CONSTRAINT"', base=base)
            assert "riseml: the install steps keep what the environment brought: torch 2.0.1+cpu" in lines
            assert "torch==2.0.1+cpu" in lines
        finally:
            builds.clean_up()
            api.remove_image(base, force=True)
