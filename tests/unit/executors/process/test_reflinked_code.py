"""A large project is unpacked once for all jobs of an experiment where files can share blocks, else for each job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.executors.process import reflinked_code
from riseml.executors.process.reflinked_code import ReflinkedCode
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.project_files import StateChanges

LARGE = 1 << 30  # bytes


class CountedState:
    """A state of a project that says how large it is, and counts how often it is read."""

    identity = "ab12"

    def __init__(self, size: int, count: int) -> None:
        self.size = size
        self.count = count
        self.reads = 0

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        self.reads += 1
        yield ArchiveEntry("train.py", EntryKind.FILE, 4, 1_700_000_000), iter([b"text"])

    def find_changes(self, digest: str, identity: str) -> StateChanges | None:
        return None


def write_jobs(project: CountedState, root: Path) -> None:
    """Write the project for two jobs of one experiment; each changes its file."""
    code = ReflinkedCode()
    for job in ("master", "worker.1"):
        target = root / job
        target.mkdir()
        code.write_project(project, target, root)
        assert (target / "train.py").read_bytes() == b"text"
        (target / "train.py").write_bytes(job.encode())


@pytest.mark.parametrize(
    ("size", "count", "shares", "reads"),
    [(LARGE, 10, True, 1), (LARGE, 10, False, 2), (1000, 1, True, 2), (LARGE, 10**6, True, 2)],
    ids=["large", "large, and the file system cannot", "small", "many small files"],
)
def test_a_project_is_read_once_where_that_is_worth_it(
    size: int, count: int, *, shares: bool, reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflinked_code, "can_share_blocks", lambda _: shares)
    project = CountedState(size, count)
    write_jobs(project, tmp_path)
    assert project.reads == reads


def test_a_copy_from_before_a_loss_of_power_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflinked_code, "can_share_blocks", lambda _: True)
    project = CountedState(LARGE, 1)
    for boot in ("first", "second"):
        monkeypatch.setattr(reflinked_code, "read_boot_id", lambda boot=boot: boot)
        (tmp_path / boot).mkdir()
        ReflinkedCode().write_project(project, tmp_path / boot, tmp_path)
    assert project.reads == 2
