"""What a job has written into its working folder, whatever it has put there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import Refused, UsageError
from riseml.base.names import JobName
from riseml.executors.supervision import working_folder
from riseml.executors.supervision.working_folder import read_written_files
from riseml.executors.written_files import Unread, WrittenFile, WrittenRequest
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.local_files import LocalFiles
from riseml.job_programs.folder_contents import FileUpload
from riseml.model import JobKey
from riseml.spec.scalars.output_patterns import parse_output_pattern
from tests.support.waiting import wait_for

KEY = JobKey(1, JobName("train"), 1)
PROJECT = {
    "train.py": ArchiveEntry("train.py", EntryKind.FILE, 4, 1_700_000_000),
    "notes.csv": ArchiveEntry("notes.csv", EntryKind.FILE, 4, 1_700_000_000),
    "link": ArchiveEntry("link", EntryKind.LINK, target="train.py"),
}


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Path]:
    """The working folder of a job that begins now, with a project and with what an install step made."""
    folder = tmp_path / "job" / "code"
    folder.mkdir(parents=True)
    for name in ("train.py", "notes.csv", "installed.bin"):
        (folder / name).write_text("old\n")
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    (folder / "link").symlink_to("train.py")
    stamp = tmp_path / "stamp"
    stamp.touch()
    made = stamp.stat().st_ctime_ns

    def clock_goes_on() -> bool:
        probe = tmp_path / "probe"
        probe.touch()
        return probe.stat().st_ctime_ns > made

    wait_for("a new file has a later time", clock_goes_on, 10.0)
    yield folder


def read(job: Path, *wanted: str, home: str = "/nonexistent") -> dict[str, WrittenFile | bytes]:
    """Return what was written by path: the content of wanted files."""
    order = WrittenRequest(KEY, tuple(map(parse_output_pattern, wanted)), home, lambda: PROJECT)
    found: dict[str, WrittenFile | bytes] = {}
    for one in read_written_files(job, job.parents[1] / "stamp", order):
        assert isinstance(one, WrittenFile), one
        found[one.path] = one if one.content is None else b"".join(one.content)
    return found


def test_a_pattern_means_a_name_with_a_percent_sign_as_it_is_written(job: Path) -> None:
    for name in ("50%.csv", "50%25.csv", "pct%41.txt"):
        (job / name).write_text(name)
    os.mkdir(os.fsencode(job) + b"/\xff")
    (job / "\udcff" / "in").write_text("in")
    assert read(job, "50%.csv", "pct%41.txt", "?/in") == {
        "50%25.csv": b"50%.csv",
        "50%2525.csv": WrittenFile("50%2525.csv", 9, (job / "50%25.csv").stat().st_mtime_ns),
        "pct%2541.txt": b"pct%41.txt",
        "%FF/in": b"in",
    }
    home = job.parents[1] / "home"
    (home / "r%s").mkdir(parents=True)
    (home / "r%s" / "x%y").write_text("x")
    assert read(job, "~/r%s/x%y", home=str(home))["r%25s/x%25y"] == b"x"
    assert read(job, "~/r%s", home=str(home))["r%25s/x%25y"] == b"x"


def test_nothing_is_found_where_nothing_was_written(job: Path) -> None:
    (job / "train.py").chmod(0o755)
    (job / "__pycache__").mkdir()
    (job / "__pycache__" / "x.pyc").touch()
    (job / ".riseml").mkdir()
    (job / ".riseml" / "riseml.py").touch()
    (job / "empty").mkdir()
    assert read(job, "*") == {}


def test_new_and_changed_files_are_found_and_wanted_ones_are_read(job: Path) -> None:
    (job / "runs" / "a").mkdir(parents=True)
    (job / "runs" / "a" / "events").write_text("12345")
    (job / "model.pt").write_bytes(b"model")
    os.utime(job / "model.pt", (1, 1))  # an old time of its own does not hide it
    (job / "notes.csv").write_text("old\nnew\n")
    found = read(job, "runs", "*.pt")
    assert found["runs/a/events"] == b"12345"
    assert found["model.pt"] == b"model"
    left = found.pop("notes.csv")
    assert isinstance(left, WrittenFile)
    assert (left.size, left.content) == (8, None)
    assert sorted(found) == ["model.pt", "runs/a/events"]


def test_no_link_leads_out_and_special_files_are_left_out(job: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("key")
    (job / "runs").symlink_to(secret)
    (job / "one.pt").symlink_to(secret / "key")
    os.mkfifo(job / "pipe.pt")
    (job / "dark").mkdir()
    found = read(job, "runs", "*.pt", "key")
    assert {path: one.target for path, one in found.items() if isinstance(one, WrittenFile)} == {
        "runs": str(secret),
        "one.pt": str(secret / "key"),
    }


def test_a_job_that_removed_its_folder_or_put_a_link_there_has_nothing(job: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.pt").touch()
    job.rename(job.with_name("away"))
    assert read(job, "*.pt") == {}
    job.symlink_to(tmp_path / "other")
    assert read(job, "*.pt") == {}


def test_many_files_end_the_reading(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_folder, "MOST_LISTED", 5)
    for number in range(9):
        (job / f"{number}.txt").touch()
    found = list(read_written_files(job, job.parents[1] / "stamp", WrittenRequest(KEY)))
    assert len(found) == 6
    assert isinstance(found[-1], Unread)


def test_files_of_the_home_folder_and_of_the_root_count_when_they_are_new(job: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "results" / "deep").mkdir(parents=True)
    (home / "results" / "deep" / "a.csv").write_text("a")
    (home / "mine.csv").write_text("mine")
    (home / "results" / "out").symlink_to(tmp_path)
    absolute = str(home / "results" / "deep" / "*.csv")
    found = read(job, "~/results/**/*.csv", absolute, "~/nothing/x", home=str(home))
    assert found == {"results/deep/a.csv": b"a", f"{home}/results/deep/a.csv".removeprefix("/"): b"a"}


def test_a_large_file_gets_a_second_name_instead_of_a_copy(job: Path, tmp_path: Path) -> None:
    def open_output() -> int:
        return os.open(tmp_path / "output", os.O_RDONLY)

    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "runs").symlink_to(tmp_path)
    (job / "model.pt").write_bytes(b"model")
    (job / "model.pt").chmod(0o6777)
    output = LocalFiles("output://1", open_output, open_output)
    order = WrittenRequest(KEY, (parse_output_pattern("*.pt"),))
    files = read_written_files(job, job.parents[1] / "stamp", order)
    one = next(files)
    assert isinstance(one, WrittenFile)
    assert one.source is not None
    with pytest.raises(Refused, match="behind a link"):
        output.link_file(FileUpload("runs/model.pt", "0" * 16, 5), *one.source)
    (tmp_path / "output" / "folder" / "model.pt").mkdir(parents=True)
    with pytest.raises(UsageError, match="is a folder"):
        output.link_file(FileUpload("folder/model.pt", "0" * 16, 5), *one.source)
    assert [path.name for path in (tmp_path / "output" / "folder").iterdir()] == ["model.pt"]
    for _ in range(2):
        assert output.link_file(FileUpload("a/model.pt", "0" * 16, 5), *one.source)
    assert list(files) == []
    kept = tmp_path / "output" / "a" / "model.pt"
    assert kept.samefile(job / "model.pt")
    assert kept.stat().st_mode & 0o7777 == 0o644
    assert [path.name for path in kept.parent.iterdir()] == ["model.pt"]
    (again,) = read_written_files(job, job.parents[1] / "stamp", order)
    assert isinstance(again, WrittenFile)
    assert again.source is None, "a file with two names may be one of the user's own"


def test_a_file_that_cannot_be_read_is_named(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job / "a.pt").write_text("secret")
    (job / "b.pt").write_text("b")
    usual = os.open

    def refuse(path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == b"a.pt":  # as for a file with the mode 000; root may read each
            raise PermissionError(13, "Permission denied")
        return usual(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    order = WrittenRequest(KEY, (parse_output_pattern("*.pt"),))
    found = [
        one.reason if isinstance(one, Unread) else (one.path, one.content and b"".join(one.content))
        for one in read_written_files(job, job.parents[1] / "stamp", order)
    ]
    assert found == [("a.pt", None), "a.pt cannot be read: Permission denied", ("b.pt", b"b")]
