"""The code of a large project on file systems whose files can share blocks, and on others."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.executors.environments.shared_blocks import can_share_blocks
from riseml.executors.process import reflinked_code
from riseml.files.archives.entries import ArchiveEntry
from riseml.files.archives.project_files import ProjectFiles, StateChanges
from riseml.files.project.archive import take_snapshot
from riseml.files.project.listing import list_project_files
from riseml.model import JobKey
from riseml.store.projects.snapshots import SnapshotStore
from tests.real.process.conftest import Bench
from tests.support.root import need_root
from tests.unit.store.test_states import send

MIB = 1 << 20
JOBS = 6


@pytest.fixture(params=["xfs", "btrfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system whose files can share blocks."""
    need_root("a file system of its own is a loop device")
    image, folder = tmp_path / "disk", tmp_path / "mounted"
    with image.open("wb") as file:
        file.truncate(512 * MIB)  # XFS needs 300
    subprocess.run([f"mkfs.{request.param}", "-q", image], check=True)
    folder.mkdir()
    done = subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True, text=True, check=False)
    if "unknown filesystem type" in done.stderr:  # some distributions have no Btrfs; Debian's kernels have both
        pytest.skip(f"this kernel has no {request.param}")
    assert done.returncode == 0, done.stderr
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def project(tmp_path: Path) -> ProjectFiles:
    """A stored project of 24 MiB."""
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    for number in range(24):
        (folder / "data" / f"{number}.bin").write_bytes(os.urandom(MIB + number))
    (folder / "empty").mkdir()
    os.utime(folder / "empty", (1_600_000_000, 1_600_000_000))
    (folder / "no-bytes").touch()
    (folder / "f\u00fcr J\udcfcrgen").write_bytes(b"text")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("data/7.bin")
    (folder / "to-folder").symlink_to("data")
    store, snapshot = SnapshotStore(tmp_path / "snapshots"), take_snapshot(list_project_files(folder))
    send(store, snapshot)
    found = store.find_files(snapshot.digest)
    assert found is not None
    return found


def make_bench(home: Path, environments: Path) -> Bench:
    home.mkdir()
    (home / "environments").symlink_to(environments)
    return Bench(home)


def start_all(bench: Bench, script: str, code: ProjectFiles) -> list[JobKey]:
    """Start the jobs at once, and wait until all have ended."""
    names = [f"worker.{number}" for number in range(JOBS)]
    threads = [threading.Thread(target=bench.start, args=(script, name, code)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [bench.launch(script, name).key for name in names]
    for key in found:
        assert bench.wait_end(key).exit_code == 0, bench.output(key)
    return found


def read_tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return mode, time in seconds and content of everything below a folder; no time of folders that are not empty.

    The folder `.riseml`, which each job gets beside its project, is left out.
    """
    found = {}
    for path in folder.rglob("*"):
        if path == folder / ".riseml":
            continue
        info = path.lstat()
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        counts = (path.is_file() and not path.is_symlink()) or (not content and not any(path.glob("*")))
        found[str(path.relative_to(folder))] = (info.st_mode, int(info.st_mtime) if counts else 0, content)
    return found


def test_jobs_share_blocks_and_no_writes(tmp_path: Path, disk: Path, environments: Path, project: ProjectFiles) -> None:
    plain = make_bench(tmp_path / "home", environments)
    expected = read_tree(plain.home / "processes" / "1" / f"{plain.start('true', code=project).job}-a1" / "code")
    bench = make_bench(disk / "home", environments)
    os.sync()
    before = shutil.disk_usage(disk).used
    keys = start_all(bench, "true", project)
    codes = [bench.home / "processes" / "1" / f"{key.job}-a1" / "code" for key in keys]
    assert {str(code): read_tree(code) for code in codes} == dict.fromkeys(map(str, codes), expected)
    os.sync()
    assert shutil.disk_usage(disk).used - before < 2 * 24 * MIB, "six jobs take the disk of one"
    (codes[0] / "data" / "0.bin").write_bytes(b"mine")
    shutil.rmtree(codes[1])
    assert all(read_tree(code) == expected for code in codes[2:])
    bench.wait_end(bench.start("true", "chief", project))
    assert read_tree(bench.home / "processes" / "1" / "chief-a1" / "code") == expected
    bench.executor.release(1)
    assert list((bench.home / "processes").glob("[!.]*")) == []
    has_copy = any(plain.home.glob("processes/1/copies"))
    assert has_copy is can_share_blocks(plain.home), "where no blocks are shared there is no other copy"
    plain.executor.release(1)


class Breaking:
    """A stored project that cannot be read to its end the first time."""

    def __init__(self, project: ProjectFiles) -> None:
        self.project = project
        self.identity, self.size, self.count = "0" * 64, 24 * MIB, 30
        self.reads = 0

    def find_changes(self, digest: str, identity: str) -> StateChanges | None:
        return None

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        self.reads += 1
        for number, (entry, content) in enumerate(self.project.read_files()):
            if self.reads == 1 and number == 5:
                raise EngineError("the server's copy is damaged")
            yield entry, content


def test_a_copy_counts_when_it_is_complete_and_in_one_boot(
    disk: Path, environments: Path, project: ProjectFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, breaking = make_bench(disk / "home", environments), Breaking(project)
    with pytest.raises(EngineError, match="damaged"):
        bench.start("true", code=breaking)
    count = "ls data | wc -l"
    bench.wait_end(bench.start(count, code=breaking))
    assert bench.output(bench.launch(count).key).strip() == b"24"
    (copy,) = (bench.home / "processes" / "1" / "copies").glob("*-0*")
    shutil.rmtree(copy / "data")  # as a power cut may leave it
    monkeypatch.setattr(reflinked_code, "read_boot_id", lambda: "the next boot")
    after = bench.start(count, "chief", code=breaking)
    bench.wait_end(after)
    assert (bench.output(after).strip(), breaking.reads) == (b"24", 3)
    bench.executor.release(1)


def test_only_some_file_systems_share_blocks(disk: Path) -> None:
    assert can_share_blocks(disk)
    assert not can_share_blocks(Path("/dev/shm"))
    assert list(disk.iterdir()) == []
