"""A project's files arrive in its jobs unchanged: every name, byte and mode; 20,000 files need little memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil

from riseml.files.project.archive import Snapshot, pack_snapshot, take_snapshot
from riseml.files.project.listing import list_project_files
from riseml.store.projects.snapshots import SnapshotStore
from tests.support.memory import read_peak_memory
from tests.support.rig import Rig, single

FEW, MANY = 1_000, 20_000
BIG = 2**27  # bytes
PRINT = """\
import hashlib, os, stat
found = []
for place, folders, names in os.walk(b"."):
    folders[:] = [one for one in folders if one != b".riseml"]  # riseml's own, in each job
    for name in names + [one for one in folders if not os.listdir(os.path.join(place, one))]:
        path = os.path.join(place, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            found.append((path, b"link", os.readlink(path)))
        elif stat.S_ISDIR(mode):
            found.append((path, b"folder", b""))
        elif not name.endswith((b".pyc", b".big")):
            with open(path, "rb") as file:
                found.append((path, b"x" if mode & 0o100 else b"-", file.read()))
        else:
            found.append((path, b"size", str(os.lstat(path).st_size).encode()))
print(len(found), hashlib.sha256(repr(sorted(found)).encode()).hexdigest())
"""


def fill(folder: Path, count: int, size: int) -> Path:
    """Write a project of `count` plain files, 13 odd ones, and one of `size` bytes."""
    folder.mkdir()
    (folder / "print.py").write_text(PRINT)
    for number in range(count):
        place = folder / f"d{number % 200}"
        place.mkdir(exist_ok=True)
        (place / f"f{number}.txt").write_bytes(str(number).encode())
    for name in (b"a\nb", b"\xff\xfe", b"-rf", b"n" * 255, b" ", "größe".encode(), b"'\"$(id)`"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(name)
    deep = folder.joinpath(*["d" * 100] * 20)
    deep.mkdir(parents=True)
    (deep / "x").write_bytes(b"deep")
    (folder / "empty").mkdir()
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("d1/f1.txt")
    (folder / "nowhere").symlink_to("gone")
    with (folder / "model.big").open("wb") as file:
        file.truncate(size)
    return folder


def test_every_file_arrives_unchanged(rig: Rig, tmp_path: Path) -> None:
    project = fill(tmp_path / "project", FEW, 2**24)
    snapshot = take_snapshot(list_project_files(project))
    send(rig, snapshot)
    config = single("python print.py")
    rig.post("/v1/experiments", {"project": "p", "file": "f", "config": config, "snapshot": snapshot.digest})
    assert rig.wait_closed("1")["state"] == "FINISHED"
    here = subprocess.run([sys.executable, "print.py"], cwd=project, capture_output=True, text=True, check=True)
    assert rig.lines("1.train") == [f"1.train {here.stdout.strip()}"]
    assert int(here.stdout.split()[0]) == FEW + 14


def test_a_large_project_needs_little_memory(process_rig: Rig, tmp_path: Path) -> None:
    rig = process_rig
    assert rig.process is not None
    snapshot = take_snapshot(list_project_files(fill(tmp_path / "project", MANY, BIG)))
    assert (snapshot.count, snapshot.size > BIG) == (MANY + 13, True)
    before = psutil.Process(rig.process.pid).memory_info().rss
    send(rig, snapshot)
    grown = read_peak_memory(rig.process.pid) - before
    assert grown < BIG / 2, f"{grown:,} bytes of memory"
    stored = SnapshotStore(shutil.copytree(rig.home / "snapshots", tmp_path / "copy"))
    assert len(stored.list_files(snapshot.digest)) == MANY + 14


def send(rig: Rig, snapshot: Snapshot) -> None:
    """Upload it as `riseml train` does."""
    with rig.client() as client:
        answer = client.put(f"/v1/snapshots/{snapshot.digest}", content=pack_snapshot(snapshot), timeout=300)
    assert answer.status_code == 201, answer.text
