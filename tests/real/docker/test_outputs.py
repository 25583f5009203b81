"""What a job writes outside of OUTPUT_DIR is kept as riseml.yml says, or its loss is said, on both executors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.rig import Rig, filter_entries, single
from tests.support.waiting import DEADLINE, wait_for

pytestmark = pytest.mark.every_engine

WRITES = """
import os
os.makedirs("runs/exp1", exist_ok=True)
open("runs/exp1/events", "w").write("x" * 1000)
open("model.pt", "wb").write(bytes(5000))
open("table.csv", "a").write("2\\n")
open("same.csv", "w").write("2\\n")
os.chmod("tracked.pt", 0o755)
os.symlink("/etc/passwd", "stolen.pt")
os.symlink("model.pt", "last.pt")
os.mkfifo("pipe.pt")
"""
PROJECT = {
    "write.py": WRITES,
    "table.csv": "1\n",
    "same.csv": "1\n",
    "tracked.pt": "pretrained",
    "sub/keep.txt": "as sent",
}


def list_output(found: dict[str, Any]) -> dict[str, str | int]:
    """Return the files of an output without riseml's own: the size of each file, the target of each link."""
    root = Path(found["output"])
    paths = [path for path in root.rglob("*") if path.is_symlink() or path.is_file()]
    names = {path.relative_to(root).as_posix(): path for path in paths if path.name != "riseml-configuration.yml"}
    return {
        name: str(path.readlink()) if path.is_symlink() else path.stat().st_size
        for name, path in names.items()
        if not name.startswith(".riseml/")
    }


def find_said(rig: Rig, name: str) -> list[str]:
    """Return what riseml says in the log of a job about its files."""
    entries = filter_entries(rig.logs(name), "line")
    return [one["text"] for one in entries if one["stream"] == "engine" and one["text"].startswith("riseml: ")]


def test_the_loss_of_new_files_is_said_once_with_the_line_that_keeps_them(shared_rig: Rig) -> None:
    rig = shared_rig
    name = rig.submit(single(["python3 write.py", "mkdir -p .cache && touch .cache/x"]), PROJECT)["id"]
    found = rig.wait_closed(name)
    assert found["state"] == "FINISHED"
    written = found["written"]
    assert (written["lost_files"], written["lost_bytes"], written["kept_files"]) == (4, 6006, 0)
    assert sorted(written["lost_names"]) == ["model.pt", "runs/...", "same.csv", "table.csv"]
    (said,) = find_said(rig, name)
    assert said == f"riseml: {written['sentences'][0]}"
    assert "4 new files (5.87 KiB) were not kept: " in said
    assert "write `outputs: [" in said
    assert list_output(found) == {}


def test_a_job_that_writes_only_into_its_output_is_told_nothing(shared_rig: Rig) -> None:
    name = shared_rig.submit(single('python3 -c "import sub" || echo x >"$OUTPUT_DIR/x"'), PROJECT)["id"]
    found = shared_rig.wait_closed(name)
    assert found["written"] is None
    assert find_said(shared_rig, name) == []


@pytest.mark.parametrize("end", ["exit 0", "exit 3", "kill -9 $PPID $$", "killed"])
def test_named_files_are_kept_however_the_job_ends(shared_rig: Rig, end: str) -> None:
    rig = shared_rig
    last = 'touch "$OUTPUT_DIR/ready"; exec sleep 600' if end == "killed" else end
    config = single(["python3 write.py", last], outputs=["runs", "*.pt"], stop_grace=0)
    name = rig.submit(config, PROJECT)["id"]
    if end == "killed":
        wait_for("the job has written", rig.go_file(name).with_name("ready").exists, DEADLINE)
        rig.post(f"/v1/experiments/{name}/kill")
    found = rig.wait_closed(name)
    kept = list_output(found)
    kept.pop("ready", None)
    assert kept == {"runs/exp1/events": 1000, "model.pt": 5000, "last.pt": "model.pt"}
    assert (found["written"]["kept_files"], found["written"]["kept_bytes"]) == (2, 6000)
    assert sorted(found["written"]["lost_names"]) == ["same.csv", "table.csv"]
    assert len(find_said(rig, name)) == 2
    assert found["last_lines"] == []
    folder = Path(found["output"])
    assert {path.stat().st_uid for path in folder.rglob("*") if not path.is_symlink()} == {folder.stat().st_uid}


@pytest.mark.parametrize("end", ["exit 0", "kill -9 $PPID $$"])
def test_what_a_container_leaves_in_its_home_folder_is_named_or_kept(shared_docker_rig: Rig, end: str) -> None:
    folders = "~/results ~/runs ~/.cache ~/nltk_data /tmp/scratch"
    run = [f"mkdir {folders}", f'for one in {folders}; do echo x >"$one/x"; done', end]
    name = shared_docker_rig.submit(single(run, outputs=["~/runs"]), {"train.py": ""})["id"]
    found = shared_docker_rig.wait_closed(name)
    assert list_output(found) == {"runs/x": 2}
    assert found["written"]["lost_names"] == ["~/results/..."]
    assert 'write `outputs: ["~/runs", "~/results"]`' in find_said(shared_docker_rig, name)[-1]


def test_each_attempt_is_kept_and_the_last_one_stays(shared_rig: Rig) -> None:
    run = 'echo $RISEML_ATTEMPT >result.txt; echo x >"only-$RISEML_ATTEMPT.txt"; [ $RISEML_ATTEMPT = 2 ]'
    name = shared_rig.submit(single(run, outputs="*.txt", retry=1), {"train.py": ""})["id"]
    found = shared_rig.wait_closed(name)
    assert found["state"] == "FINISHED"
    assert sorted(list_output(found)) == ["only-1.txt", "only-2.txt", "result.txt"]
    assert Path(found["output"], "result.txt").read_text() == "2\n"


def test_jobs_of_a_gang_have_a_folder_each_and_roles_have_patterns_of_their_own(shared_rig: Rig) -> None:
    run = "echo $RISEML_JOB >model.pt; echo x >log.txt"
    roles = {"learner": {"run": run, "outputs": ["model.pt", "log.txt"]}, "actor": {"run": run, "count": 2}}
    train = {"image": "riseml-test/base:py311", "resources": {"cpus": 0.1, "mem": "64MiB"}, "outputs": ["model.pt"]}
    config = json.dumps({"project": "toaster", "train": {**train, "roles": roles}})
    name = shared_rig.submit(config, {"train.py": ""})["id"]
    found = shared_rig.wait_closed(name)
    assert sorted(list_output(found)) == [
        "actor.1/model.pt",
        "actor.2/model.pt",
        "learner/log.txt",
        "learner/model.pt",
    ]
    assert found["written"]["lost_names"] == ["log.txt"]


def test_links_in_the_output_lead_no_kept_file_elsewhere(shared_rig: Rig, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    run = f'ln -s {outside} "$OUTPUT_DIR/runs"; mkdir runs; echo x >runs/x; echo y >y.pt; ln -s /x "$OUTPUT_DIR/y.pt"'
    name = shared_rig.submit(single(run, outputs=["runs", "*.pt"]), {"train.py": ""})["id"]
    found = shared_rig.wait_closed(name)
    assert list(outside.iterdir()) == []
    assert list_output(found) == {"runs": str(outside), "y.pt": 2}
    assert "behind a link" in found["written"]["sentences"][-1]


def test_an_output_that_a_process_removed_and_made_again_is_for_its_owner_alone(process_rig: Rig) -> None:
    remove = "import os, shutil; out = os.environ['OUTPUT_DIR']; shutil.rmtree(out); os.makedirs(out)"
    name = process_rig.submit(single([f'python3 -c "{remove}"', 'echo x >"$OUTPUT_DIR/model"']))["id"]
    opened = process_rig.submit(single('chmod 750 "$OUTPUT_DIR"'))["id"]
    found = process_rig.wait_closed(name)
    assert found["state"] == "FINISHED"
    output = Path(found["output"])
    assert output.stat().st_mode & 0o777 == 0o700
    assert list_output(found) == {"model": 2}
    assert (output / ".riseml" / "capsule.json").exists()
    assert (output / "riseml-configuration.yml").exists()
    assert Path(process_rig.wait_closed(opened)["output"]).stat().st_mode & 0o777 == 0o750, "a job may share its output"


def test_a_container_cannot_remove_its_output_and_is_told_to_empty_it(shared_docker_rig: Rig) -> None:
    rig = shared_docker_rig
    name = rig.submit(single('echo x >"$OUTPUT_DIR/old"; python3 -c "import shutil; shutil.rmtree(\'/output\')"'))["id"]
    found = rig.wait_closed(name)
    assert found["state"] == "FAILED"
    assert found["advice"].startswith("/output is a mount, which no job can remove or rename: empty it instead")
    emptied = rig.submit(single('find "$OUTPUT_DIR" -mindepth 1 -delete; echo x >"$OUTPUT_DIR/model"'))["id"]
    assert list_output(rig.wait_closed(emptied)) == {"model": 2}


@pytest.mark.parametrize("point", ["P42", "P43"])
def test_a_server_that_dies_meanwhile_loses_no_file_and_says_nothing_twice(tmp_path: Path, point: str) -> None:
    rig = Rig(tmp_path / "home", None, RISEML_FAULT=point)
    with rig:
        name = rig.submit(single("python3 write.py", outputs=["runs", "*.pt"]), PROJECT)["id"]
        assert rig.process is not None
        rig.process.wait(DEADLINE)
        del rig.environment["RISEML_FAULT"]
        rig.start()
        found = rig.wait_closed(name)
        assert list_output(found) == {"runs/exp1/events": 1000, "model.pt": 5000, "last.pt": "model.pt"}
        assert [said.partition(" new file")[0] for said in find_said(rig, name)] == ["riseml: 2", "riseml: 2"]
