"""Files of a pool whose storage are Docker volumes: through the engine, without a port and without a mount here."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import APIError

from tests.real.api.test_dry_run import riseml
from tests.support.rig import Rig, single

BIG = bytes(range(256)) * 12_000  # 3 MB
FILL = r"""
cd "$OUTPUT_DIR"
mkdir -p ckpt "with space"
head -c 3000000 /dev/zero > ckpt/w
echo x > "with space/$(printf 'line\nbreak')"
ln -s /etc out
ln -s ../ckpt/w "with space/w"
exit 3
"""


@pytest.fixture
def volume_rig(tmp_path: Path, engine_url: str) -> Iterator[Rig]:
    """A server with one host, whose outputs and data are volumes."""
    rig = Rig(tmp_path / "home", engine_url)
    names = {key: f"riseml-test-{uuid.uuid4().hex[:12]}" for key in ("output", "data")}
    pool = {
        "hosts": [{"name": "h1", "url": engine_url}],
        "storage": {key: {"volume": name} for key, name in names.items()},
    }
    (rig.home / "pool.yml").write_text(json.dumps(pool))
    with rig:
        yield rig
        rig.clean_up()
    with docker.APIClient(engine_url) as api:
        for name in names.values():
            with suppress(APIError):
                api.remove_volume(name, force=True)


def test_files_that_a_job_wrote_elsewhere_are_moved_into_a_volume(volume_rig: Rig, tmp_path: Path) -> None:
    run = "mkdir -p runs/a; echo 12345 >runs/a/events; ln -s a/events runs/last; echo x >model.pt; echo y >other"
    volume_rig.submit(single(run, outputs=["runs", "*.pt"]), {"train.py": ""})
    written = volume_rig.wait_closed("1")["written"]
    assert (written["kept_files"], written["lost_names"]) == (2, ["other"]), volume_rig.last_words()
    listed = riseml(volume_rig, tmp_path, "ls", "-r", "output://1")
    assert listed.out.split() == [
        "model.pt",
        "riseml-configuration.yml",
        "runs/",
        "runs/a/",
        "runs/a/events",
        "runs/last@",
    ]
    assert riseml(volume_rig, tmp_path, "cat", "output://1/runs/last").code == 4
    assert riseml(volume_rig, tmp_path, "cat", "output://1/runs/a/events").out == "12345\n"


def test_files_in_volumes_are_listed_copied_and_removed(volume_rig: Rig, tmp_path: Path) -> None:
    rig = volume_rig
    (tmp_path / "big").write_bytes(BIG)
    rig.submit(single(FILL))
    assert rig.wait_closed("1")["state"] == "FAILED", rig.lines("1")
    listed = riseml(rig, tmp_path, "ls", "-r", "output://1")
    assert listed.code == 0, (listed.err, rig.last_words())
    names = [
        "ckpt/",
        "ckpt/w",
        "out@",
        "riseml-configuration.yml",
        "with space/",
        "with space/line\\nbreak",
        "with space/w@",
    ]
    assert listed.out.splitlines() == names
    assert "output://1/out" in riseml(rig, tmp_path, "cp", "output://1", "got").err
    assert (tmp_path / "got/ckpt/w").read_bytes() == bytes(3_000_000)
    assert os.readlink(tmp_path / "got/with space/w") == "../ckpt/w"
    assert json.loads(riseml(rig, tmp_path, "cp", "got", "data://sets/", "--json").out)["links"] == 1
    assert riseml(rig, tmp_path, "ls", "data://sets/got/with space").out.splitlines()[-1] == "w@"
    through = riseml(rig, tmp_path, "cat", "output://1/out/passwd")
    assert (through.code, "behind a link" in through.err) == (4, True)
    assert riseml(rig, tmp_path, "ls", "output://1/../..").code == 2
    assert riseml(rig, tmp_path, "cp", "big", "data://sets/").code == 0
    assert riseml(rig, tmp_path, "cp", "data://sets/big", "back").code == 0
    assert (tmp_path / "back").read_bytes() == BIG
    assert json.loads(riseml(rig, tmp_path, "cp", "big", "data://sets/", "--json").out)["unchanged"] == 1
    rig.submit(single('[ "$(cat /data/sets/big | wc -c)" = 3072000 ]; ! touch /data/x'))
    assert rig.wait_closed("2")["state"] == "FINISHED", rig.lines("2")
    removed = riseml(rig, tmp_path, "rm", "-r", "output://1/ckpt", "output://1/out", "--yes", "--json")
    assert [json.loads(line)["files"] for line in removed.out.splitlines()] == [1, 1]
    assert riseml(rig, tmp_path, "ls", "output://1/ckpt").code == 3
    done = riseml(rig, tmp_path, "system", "clean", "--outputs", "--project", "toaster", "--yes", "--json")
    assert [one["removed"] for one in json.loads(done.out)["outputs"]] == [True, True]
    assert riseml(rig, tmp_path, "ls", "-a", "output://1").out == ""
    assert sorted(os.listdir(tmp_path / "got/with space")) == ["line\nbreak", "w"]
