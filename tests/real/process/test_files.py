"""`riseml ls|cat|du|cp|rm` over data:// and output://, against a real server whose jobs are processes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.real.api.test_dry_run import riseml
from tests.support.rig import GO, Rig, single

FILL = r"""
cd "$OUTPUT_DIR"
mkdir -p ckpt/deep "with space"
echo weights > ckpt/deep/w
echo x > "$(printf 'line\nbreak')"
echo 255 > $(printf 'n%.0s' $(seq 255))
ln -s /etc out
ln -s deep/w ckpt/last
ln -s ../ckpt/deep "with space/up"
ln -s deep/../../.. ckpt/away
mkfifo pipe
echo 1 > "with space/a.json"
"""
LONG = "n" * 255


def test_the_output_of_a_failed_experiment_is_listed_and_copied(process_rig: Rig, tmp_path: Path) -> None:
    rig = process_rig
    rig.submit(single(FILL + "exit 3"))
    assert rig.wait_closed("1")["state"] == "FAILED"
    listed = riseml(rig, tmp_path, "ls", "-r", "output://1")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.splitlines() == [
        "ckpt/",
        "ckpt/away@",
        "ckpt/deep/",
        "ckpt/deep/w",
        "ckpt/last@",
        "line\\nbreak",
        LONG,
        "out@",
        "pipe|",
        "riseml-configuration.yml",
        "with space/",
        "with space/a.json",
        "with space/up@",
    ]
    rows = [json.loads(line) for line in riseml(rig, tmp_path, "ls", "output://1/ckpt", "--json").out.splitlines()]
    assert [(row["path"], row["kind"], row["target"]) for row in rows] == [
        ("output://1/ckpt/away", "link", "deep/../../.."),
        ("output://1/ckpt/deep", "folder", None),
        ("output://1/ckpt/last", "link", "deep/w"),
    ]
    assert riseml(rig, tmp_path, "cat", "output://1/*/a.json").out == "1\n"
    copied = riseml(rig, tmp_path, "cp", "output://1", "got")
    assert copied.code == 0
    assert "output://1/ckpt/away, output://1/out, output://1/pipe" in copied.err
    assert "and 2 links" in copied.out
    assert (tmp_path / "got/ckpt/deep/w").read_text() == "weights\n"
    assert (tmp_path / "got/line\nbreak").read_text() == "x\n"
    assert (tmp_path / "got" / LONG).read_text() == "255\n"
    assert sorted(os.listdir(tmp_path / "got/ckpt")) == ["deep", "last"]
    assert (os.readlink(tmp_path / "got/ckpt/last"), (tmp_path / "got/ckpt/last").read_text()) == (
        "deep/w",
        "weights\n",
    )
    assert (tmp_path / "got/with space/up/w").read_text() == "weights\n"
    alone = riseml(rig, tmp_path, "cp", "output://1/ckpt/last", ".")
    assert (alone.code, "is a link to deep/w" in alone.err) == (4, True)
    again = json.loads(riseml(rig, tmp_path, "cp", "output://1/ckpt", "output://1/with space", "got", "--json").out)
    assert (again["files"], again["links"], again["unchanged"]) == (0, 0, 3)
    assert riseml(rig, tmp_path, "cat", "output://1/pipe").code == 4
    through = riseml(rig, tmp_path, "cat", "output://1/out/passwd")
    assert (through.code, "behind a link" in through.err) == (4, True)
    for missing in (("ls", "output://1/none"), ("ls", "output://7"), ("ls", "output://me/other/1")):
        assert riseml(rig, tmp_path, *missing).code == 3, missing
    for words in (
        ("ls", "output://1/../x"),
        ("ls", "s3://x"),
        ("ls", "output://"),
        ("cp", "output://1"),
        ("cp", "a", "b"),
    ):
        assert riseml(rig, tmp_path, *words).code == 2, words
    total = json.loads(riseml(rig, tmp_path, "du", "output://1/ckpt", "--json").out.splitlines()[-1])
    assert total == {"path": "output://1/ckpt", "files": 3, "size": 8}


def test_files_go_in_and_are_removed(process_rig: Rig, tmp_path: Path) -> None:
    rig = process_rig
    rig.submit(single(GO))
    rig.wait_state("1", "RUNNING")
    (tmp_path / "set/empty").mkdir(parents=True)
    (tmp_path / "set/a b").write_bytes(bytes(range(256)) * 20_000)
    (tmp_path / "set/run.sh").write_text("true\n")
    (tmp_path / "set/run.sh").chmod(0o755)
    (tmp_path / "set/link").symlink_to("/etc/passwd")
    (tmp_path / "set/empty/inside").symlink_to("../run.sh")
    shown = riseml(rig, tmp_path, "cp", "--dry-run", "set", "data://")
    assert (shown.code, "set/a b -> data://set/a b  5.1 MB" in shown.out) == (0, True)
    assert riseml(rig, tmp_path, "ls", "data://").out == ""
    assert "link" in riseml(rig, tmp_path, "cp", "set", "data://").err
    listed = riseml(rig, tmp_path, "ls", "-r", "data://set").out.splitlines()
    assert listed == ["a b", "empty/", "empty/inside@", "run.sh"]
    assert riseml(rig, tmp_path, "cp", "data://set", "back").code == 0
    assert (tmp_path / "back/a b").read_bytes() == (tmp_path / "set/a b").read_bytes()
    assert os.access(tmp_path / "back/run.sh", os.X_OK)
    assert (tmp_path / "back/empty/inside").read_text() == "true\n"
    assert riseml(rig, tmp_path, "cp", "data://set/*", "output://1/in/").code == 0
    assert riseml(rig, tmp_path, "cat", "output://1/in/run.sh").out == "true\n"
    held = riseml(rig, tmp_path, "rm", "--yes", "-r", "output://1/in")
    assert (held.code, "has not ended" in held.err) == (4, True)
    rig.go_file("1").touch()
    rig.wait_closed("1")
    assert riseml(rig, tmp_path, "rm", "-r", "output://1/in").code == 4
    assert riseml(rig, tmp_path, "rm", "output://1/in", "--yes").code == 2
    assert riseml(rig, tmp_path, "rm", "data://", "--yes", "-r").code == 2
    assert riseml(rig, tmp_path, "rm", "set", "--yes", "-r").code == 2
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("stays")
    folder = Path(rig.experiment("1")["output"])
    (folder / "in/away").symlink_to(outside)
    assert riseml(rig, tmp_path, "rm", "output://1/in/away/precious", "--yes").code == 4
    assert riseml(rig, tmp_path, "rm", "--dry-run", "-r", "output://1/in").code == 0
    assert (folder / "in/run.sh").exists()
    removed = json.loads(riseml(rig, tmp_path, "rm", "-r", "output://1/in", "--yes", "--json").out)
    assert (removed["files"], removed["folders"], removed["done"]) == (3, 2, True)
    assert not (folder / "in").exists()
    assert (outside / "precious").exists()


def test_outputs_are_kept_and_cleaned(process_rig: Rig, tmp_path: Path) -> None:
    rig = process_rig
    rig.submit(single('head -c 3000 /dev/zero >"$OUTPUT_DIR/zero"', parameters={"lr": [1, 2]}))
    rig.submit(single(GO))
    rig.wait_closed("1")
    rig.wait_state("2", "RUNNING")
    assert riseml(rig, tmp_path, "keep", "1.1").out == "Kept: 1.1\n"
    held = riseml(rig, tmp_path, "rm", "--yes", "output://1.1/zero")
    assert (held.code, "is kept" in held.err) == (4, True)
    shown = riseml(rig, tmp_path, "system", "clean", "--outputs", "--larger", "2K")
    assert [line.split()[0] for line in shown.out.splitlines()] == ["ID", "1.2"]
    assert "add --yes" in shown.err
    assert len(riseml(rig, tmp_path, "ls", "output://1").out.splitlines()) == 2
    for words in (["--outputs"], ["--older", "30d"], ["--outputs", "--larger", "1"], ["--outputs", "--older", "x"]):
        assert riseml(rig, tmp_path, "system", "clean", *words).code == 2, words
    assert json.loads(riseml(rig, tmp_path, "system", "clean", "--outputs", "--older", "1d", "--json").out) == {
        "outputs": [],
        "next": None,
        "next_sub": None,
    }
    done = riseml(rig, tmp_path, "system", "clean", "--outputs", "--larger", "2K", "--yes", "--json")
    removed = json.loads(done.out)["outputs"]
    assert [(one["experiment"], one["removed"]) for one in removed] == [("1.2", True)]
    assert riseml(rig, tmp_path, "ls", "-a", "output://1.2").out == ""
    assert " 3000 " in riseml(rig, tmp_path, "ls", "-l", "output://1.1/zero").out
    assert riseml(rig, tmp_path, "keep", "--no", "1").out == "No output is kept.\n"
    assert rig.post("/v1/experiments/2/output/remove").status_code == 409
    rig.go_file("2").touch()
    rig.wait_closed("2")


def test_what_a_job_reports_as_media_is_listed(process_rig: Rig, tmp_path: Path) -> None:
    rig = process_rig
    calls = (
        "riseml.report_image('s', 40, [[0, 255]]); riseml.report_text('s', 'x'); riseml.report_image('s', 'no', [[1]])"
    )
    rig.submit(single(f'python3 -c "import riseml; {calls}"'))
    assert rig.wait_closed("1")["state"] == "FINISHED"
    listed = riseml(rig, tmp_path, "media", "1")
    assert (listed.code, listed.err) == (0, "")
    assert [line.split()[:4] for line in listed.out.splitlines()[1:3]] == [
        ["s", "picture", "1", "40"],
        ["s", "text", "1", "0"],
    ]
