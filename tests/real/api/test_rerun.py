"""A run is repeated: by its ID, or from its capsule alone on a server that has never seen it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.command import run_riseml
from tests.support.rig import Rig, single

SECRET = "geheim-77a0"
PROGRAM = 'echo "$LR $SEED $MODE $(cat lines.txt) $(ls "$DATA_DIR")"; test -n "$TOKEN"'
FILES = {"lines.txt": "one\n", "below/tool.sh": "#!/bin/sh\n"}


def run(rig: Rig, folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return run_riseml(list(words), folder, rig.environ() | environ)


def start(rig: Rig, **keys: Any) -> Path:
    """Run the first experiment to its end; return its output folder."""
    (rig.home / "data" / "digits").mkdir(parents=True)
    config = single(PROGRAM, env=["TOKEN", "MODE=fast"], parameters={"lr": 0.1, "seed": [7, 8]}, **keys)
    rig.submit(config, FILES, environment={"TOKEN": SECRET})
    for name in ("1.1", "1.2"):
        assert rig.wait_closed(name)["state"] == "FINISHED"
    return Path(rig.experiment("1.2")["output"])


def printed(rig: Rig, name: str) -> list[str]:
    return [line.partition(" ")[2] for line in rig.lines(name, follow=False) if ".train " in line]


def test_a_run_is_repeated_by_its_id_and_from_its_capsule_alone(make_rig: Callable[..., Rig], tmp_path: Path) -> None:
    first, empty = make_rig("first"), make_rig("empty")
    first.start()
    output = start(first)
    digest_then = first.experiment("1.2")["image_digest"]
    assert (digest_then is None) is (first.engine is None)
    said = printed(first, "1.2")
    assert said == ["0.1 8 fast one digits"]
    again = run(first, tmp_path, "rerun", "1.2", "--allow-env", "TOKEN", TOKEN=SECRET)
    assert again.returncode == 0, again.stderr
    assert printed(first, "2") == said
    other = run(first, tmp_path, "rerun", "1.2", "-d", "-p", "lr=0.5", "--allow-env", "TOKEN", TOKEN=SECRET)
    assert other.returncode == 0, other.stderr
    first.wait_closed("3")
    assert printed(first, "3") == ["0.5 8 fast one digits"]
    assert first.get("/v1/experiments/3/capsule")["capsule"]["rerun_of"] == "1.2"
    whole = run(first, tmp_path, "rerun", "1", "-d", "--json", "--allow-env", "TOKEN", TOKEN=SECRET)
    assert len(json.loads(whole.stdout)["experiments"]) == 2
    first.wait_closed("4.2")
    first.stop()
    capsule = shutil.copytree(output / ".riseml", tmp_path / "handed-over" / ".riseml")
    shutil.rmtree(first.home)

    empty.start()
    refused = run(empty, tmp_path, "rerun", "handed-over/.riseml")
    assert refused.returncode == 4, refused.stderr
    assert "variable: the variable TOKEN is not set" in refused.stderr
    assert "`export TOKEN=...`, and then the same command with `--allow-env TOKEN`" in refused.stderr
    assert "data: the data folder" in refused.stderr
    assert "lacks digits" in refused.stderr
    assert "nothing was started" in refused.stderr
    (empty.home / "data" / "digits").mkdir(parents=True)
    unasked = run(empty, tmp_path, "rerun", "handed-over", TOKEN=SECRET)
    assert unasked.returncode == 4, "it is not sent without a yes"
    assert "--allow-env TOKEN" in unasked.stderr
    assert empty.get("/v1/experiments", all=True)["experiments"] == []
    done = run(empty, tmp_path, "rerun", "handed-over/.riseml", "--allow-env", "TOKEN", TOKEN=SECRET)
    assert done.returncode == 0, done.stderr
    assert printed(empty, "1") == said
    assert empty.experiment("1")["image_digest"] == digest_then
    for name, words in (("a", ("1", "a")), ("b", ("handed-over/.riseml", "b"))):
        back = run(empty, tmp_path, "checkout", *words)
        assert back.returncode == 0, back.stderr
        assert (tmp_path / name / "lines.txt").read_text() == "one\n"
        assert (tmp_path / name / "below" / "tool.sh").exists()
    assert run(empty, tmp_path, "checkout", "1", "a").returncode == 4, "it is there already"

    record = json.loads((capsule / "capsule.json").read_text())
    for job in record["jobs"]:  # as versions before the key `shell` wrote it
        job["launch"]["command"] = ["/bin/sh", "-ec", job["launch"]["command"][-1]]
    (capsule / "capsule.json").write_text(json.dumps(record))
    old = run(empty, tmp_path, "rerun", "handed-over", "--json", "-d", "--allow-env", "TOKEN", TOKEN=SECRET)
    assert "note: sh read the lines of that run, and reads them again" in old.stderr
    name = json.loads(old.stdout)["id"]
    assert empty.wait_closed(name)["state"] == "FINISHED"
    assert empty.get(f"/v1/experiments/{name}/capsule")["capsule"]["jobs"][0]["launch"]["command"][1] == "-ec"

    (capsule / "project.tar").write_bytes(b"\0" * 1024)
    digest = json.loads((capsule / "capsule.json").read_text())["code"]["digest"]
    for path in (empty.home / "snapshots").glob(f"{digest}*"):
        path.unlink()
    gone = run(empty, tmp_path, "rerun", "handed-over", "--force", "--allow-env", "TOKEN", TOKEN=SECRET)
    assert gone.returncode == 4
    assert "code: the project's files" in gone.stderr
    assert run(empty, tmp_path, "checkout", "handed-over", "c").returncode == 3
    assert not (tmp_path / "c").exists()
    assert run(empty, tmp_path, "rerun", "./nowhere").returncode == 3
