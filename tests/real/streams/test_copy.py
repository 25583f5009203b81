"""`riseml cp`: files out of running jobs, and into them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from tests.real.streams.conftest import Hands
from tests.support.rig import GO, Rig, single

FILL = """\
cd "$OUTPUT_DIR"
mkdir -p model/deep
echo weights > model/deep/w
ln -s deep/w model/last
ln model/deep/w model/hard
ln -s /etc model-out
cd - >/dev/null
echo me > mine.txt
"""
EVIL = """\
#!/usr/bin/env python3
import io, json, sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
    for name in json.load(open("/code/names")):
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = 4, 0o6777
        tar.addfile(entry, io.BytesIO(b"evil"))
"""


def test_files_come_out_of_a_job_and_go_into_it(rig: Rig, tmp_path: Path) -> None:
    rig.submit(single(FILL + GO))
    rig.wait_state("1", "RUNNING")
    hands = Hands(rig)
    rig.wait("the job is ready", lambda: hands.call("exec", "1", "--", "test", "-e", "mine.txt")[0] == 0)
    output = "/output" if rig.host.contained else rig.experiment("1")["output"]
    code, out, err = hands.call("cp", f"1.train:{output}/model", str(tmp_path), "--json")
    assert (code, json.loads(out)["to"]) == (0, str(tmp_path / "model")), err
    assert (tmp_path / "model/deep/w").read_text() == (tmp_path / "model/hard").read_text() == "weights\n"
    assert os.readlink(tmp_path / "model/last") == "deep/w"
    assert hands.call("cp", "1:mine.txt", str(tmp_path / "yours.txt"))[0] == 0
    assert (tmp_path / "yours.txt").read_text() == "me\n"
    code, _, err = hands.call("cp", f"1:{output}/model", str(tmp_path))
    assert (code, "riseml replaces no folder" in err) == (4, True)
    code, _, err = hands.call("cp", f"1:{output}/none", str(tmp_path))
    assert (code, f"1.train has no {output}/none" in err) == (3, True)
    code, _, err = hands.call("cp", f"1:{output}/model-out", str(tmp_path))
    assert (code, "leads out of what is copied" in err) == (4, True)
    big = bytes(range(256)) * 8192
    (tmp_path / "big").write_bytes(big)
    assert hands.call("cp", str(tmp_path / "big"), f"1:{output}/")[0] == 0
    assert hands.call("cp", str(tmp_path / "model"), f"1:{output}/again")[0] == 0
    shown = hands.call("exec", "1", "--", "sh", "-c", f"cat {output}/again/last {output}/big")[1]
    assert shown == b"weights\n" + big
    code, _, err = hands.call("cp", str(tmp_path / "big"), "1:/no/such/folder/x")
    assert (code, "has no folder /no/such/folder" in err) == (3, True)
    assert hands.call("cp", "a", "b")[0] == hands.call("cp", "1:a", "1:b")[0] == hands.call("cp", "1:/", ".")[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big", "home", "model", "yours.txt"]


def test_a_job_that_lies_writes_nothing_outside_of_the_target(docker_rig: Rig, tmp_path: Path) -> None:
    path = "/code/bin:/usr/local/bin:/usr/bin:/bin"
    docker_rig.submit(single(f"chmod +x bin/tar; touch ready; {GO}", env={"PATH": path}), {"bin/tar": EVIL})
    docker_rig.wait_state("1", "RUNNING")
    hands = Hands(docker_rig)
    docker_rig.wait("the job is ready", lambda: hands.call("exec", "1", "--", "test", "-e", "ready")[0] == 0)
    here = tmp_path / "here"
    here.mkdir()
    for names in (["../evil"], ["/tmp/evil"], ["evil"], ["bin", "bin/x"]):
        hands.call("exec", "1", "--", "sh", "-c", "cat > /code/names", given=json.dumps(names).encode())
        code, _, err = hands.call("cp", "1:bin", str(here))
        assert code == 4, (names, err)
        assert list(here.iterdir()) == []
        assert not (tmp_path / "evil").exists()
    hands.call("exec", "1", "--", "sh", "-c", "cat > /code/names", given=b'["bin"]')
    assert hands.call("cp", "1:bin", str(here))[0] == 0
    docker_rig.submit(single(f"PATH=/usr/bin:/bin; {GO}", env={"PATH": "/code"}))
    docker_rig.wait_state("2", "RUNNING")
    code, _, err = hands.call("cp", "2:bin", str(here))
    assert (code, "the image of 2.train has no tar" in err) == (4, True), err
    assert stat.S_IMODE((here / "bin").stat().st_mode) == 0o755
