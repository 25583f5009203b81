"""The program that reads event files beside a job: what it prints while files grow, rotate, vanish and lie."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from riseml.job_programs import event_reader, read_program
from riseml.job_programs.event_reader import EventReader, find_pause, names_host
from riseml.store.logs.report_lines import split_report
from tests.support.event_files import make_event, make_record

NAME = "events.out.tfevents.1795904189.host.7"


class Job:
    """A reader, and what it prints."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str], jobs: int = 1, began: float = 0.0) -> None:
        self.folder = folder
        self.capture = capture
        self.reader = EventReader(str(folder), jobs, began)
        self.errors = ""

    def write(self, run: str, content: bytes, name: str = NAME) -> Path:
        folder = self.folder / run
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / name, "ab") as file:
            file.write(content)
        return folder / name

    def read(self, deadline: float = 0.0) -> list[dict[str, float]]:
        """Return the reports of one pass, without their times."""
        self.reader.next_search = 0
        self.reader.read_new(deadline)
        out, errors = self.capture.readouterr()
        self.errors += errors
        reports = []
        for line in out.split("\n")[:-1]:
            shown, report = split_report(line.encode())
            assert shown is None, line
            assert report is not None
            values = json.loads(report.removeprefix(b"riseml.report "))
            assert values.pop("riseml.at") > 0
            reports.append(values)
        return reports


@pytest.fixture
def job(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Job:
    return Job(tmp_path, capfd)


def test_files_are_read_as_they_grow_under_the_names_of_their_runs(job: Job) -> None:
    half = make_event(1, loss=0.25)
    job.write("", make_event(0) + make_event(0, loss=0.5, acc=1) + half[:20])
    job.write("a/eval", make_event(3, loss=2))
    assert job.read() == [{"step": 3, "a/eval/loss": 2}, {"step": 0, "loss": 0.5, "acc": 1}]
    assert job.read() == []
    job.write("", half[20:] + make_event(2, loss=float("nan")))
    job.write("", make_event(3, loss=0), "events.out.tfevents.1795904190.host.7.v2")
    (first, second, third) = job.read()
    assert (first, third) == ({"step": 1, "loss": 0.25}, {"step": 3, "loss": 0})
    assert str(second["loss"]) == "nan"
    assert job.errors == ""


def test_what_is_there_from_an_earlier_attempt_is_not_read_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    now = time.time()
    job = Job(tmp_path, capfd, began=now)
    job.write("", make_event(0, now - 60) + make_event(1, now - 50, loss=1) + make_event(2, now + 1, loss=2))
    job.write("eval", make_event(0, now + 1) + make_event(1, now - 1000, loss=3))
    assert job.read() == [{"step": 1, "eval/loss": 3}, {"step": 2, "loss": 2}], (
        "a writer may choose the times of its values"
    )


def test_a_file_that_is_deleted_or_replaced_begins_anew(job: Job) -> None:
    path = job.write("run", make_event(0, loss=1) + make_event(1, loss=2))
    assert len(job.read()) == 2
    path.unlink()
    assert job.read() == []
    job.write("run", make_event(7, loss=3))
    assert job.read() == [{"step": 7, "run/loss": 3}]
    path.write_bytes(make_event(8, x=1)[:-1])
    assert job.read() == []


def test_a_damaged_file_is_named_once_and_read_on_when_it_is_whole(job: Job) -> None:
    """On some file systems a size is there before the bytes are."""
    path = job.write("", make_event(0, loss=1) + bytes(40) + make_event(1, loss=2))
    assert job.read() == [{"step": 0, "loss": 1}]
    assert job.read() == []
    assert job.errors.count("is not read beyond byte") == 1
    path.write_bytes(make_event(0, loss=1) + make_event(1, loss=2))
    os.utime(path, (1, 1))
    assert job.read() == [{"step": 1, "loss": 2}]
    job.write("pictures", make_record(b"x" * (9 << 20)) + make_event(4, loss=5))
    assert job.read() + job.read() == [{"step": 4, "pictures/loss": 5}], "a large record is passed over"


def test_each_file_has_one_reader_of_several_jobs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    host = os.uname().nodename
    first, second = Job(tmp_path, capfd, jobs=2), Job(tmp_path, capfd, jobs=2)
    first.write("a", make_event(0, loss=1), f"events.out.tfevents.1795904189.{host}.7.0")
    first.write("b", make_event(0, loss=1), "events.out.tfevents.1795904189.other.7.0")
    first.write("c", make_event(0, loss=1), "tfevents of somebody")
    assert first.read() == [{"step": 0, "a/loss": 1}, {"step": 0, "c/loss": 1}]
    assert second.read() == []
    first.reader.files.clear()
    assert second.read() == [], "what another one has read is never taken"


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("events.out.tfevents.1.worker-1.77.0", True),
        ("events.out.tfevents.0000000001.worker-1", True),
        ("events.out.tfevents.1.worker-1.v2", True),
        ("events.out.tfevents.1.worker-11.77.0", False),
        ("x.tfevents", True),
        ("tfevents.x", True),
    ],
)
def test_the_name_of_a_file_has_its_host(name: str, *, names: bool) -> None:
    assert names_host(name, "worker-1") is names


def test_patterns_of_outputs_are_read_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work" / "runs").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    job = Job(tmp_path / "out", capfd)
    job.reader.patterns = ("runs", "*tfevents*")
    for folder in ("runs/a", ""):
        path = tmp_path / "work" / folder
        path.mkdir(exist_ok=True)
        (path / NAME).write_bytes(make_event(1, loss=2))
    assert sorted(job.read(), key=str) == [{"step": 1, "loss": 2}, {"step": 1, "runs/a/loss": 2}]


def test_a_hostile_output_is_bounded(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tags, many files, links, pipes and a file with a hole: each bound is told once."""
    monkeypatch.setattr(event_reader, "MOST_FILES", 20)
    values = {f"tag {number}": number for number in range(300)}
    job.write("many", make_event(1, **values))
    os.mkfifo(job.folder / "tfevents.fifo")
    (job.folder / "tfevents.link").symlink_to("/dev/zero")
    (job.folder / "loop").symlink_to(job.folder)
    with open(job.folder / "tfevents.hole", "wb") as file:
        file.truncate(1 << 40)
    for number in range(30):
        job.write("more", b"x", f"tfevents.{number}")
    reports = job.read()
    names = {name for report in reports for name in report} - {"step"}
    assert names == {f"many/tag {number}" for number in range(100)}
    assert len(job.reader.files) == 20
    assert [job.errors.count(word) for word in ("more than 100 metrics", "only 20 event files")] == [1, 1]


def test_the_last_pass_reads_more_than_one_pass_takes(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_reader, "PASS_BYTES", 1000)
    monkeypatch.setattr(event_reader, "CHUNK", 1000)
    job.write("", b"".join(make_event(step, loss=step) for step in range(500)))
    first = job.read()
    assert 0 < len(first) < 100
    rest = job.read(time.monotonic() + 3600)
    assert [report["step"] for report in [*first, *rest]] == list(range(500))


@pytest.mark.parametrize(("seconds", "is_whole"), [(3, False), (100, True)])
def test_a_last_file_that_is_not_read_in_time_is_told(
    job: Job, monkeypatch: pytest.MonkeyPatch, seconds: int, *, is_whole: bool
) -> None:
    """Each look at the clock is a second later."""
    monkeypatch.setattr(event_reader, "CHUNK", 1000)
    job.write("", b"".join(make_event(step, loss=step) for step in range(500)))
    seen = itertools.count()
    monkeypatch.setattr(event_reader, "time", SimpleNamespace(monotonic=lambda: float(next(seen))))
    assert (len(job.read(seconds)) == 500) is is_whole
    assert job.errors.count("not all of its event files were read in time") == (not is_whole)


def test_the_program_ends_with_its_input_and_reads_the_rest(tmp_path: Path) -> None:
    """Files that appear before the end are read, although no search is due."""
    program = tmp_path / "reader.py"
    program.write_text(read_program("event_reader"))
    command = [sys.executable, "-IS", str(program), "input", "1", "0.0", "tensorboard"]
    environment = {**os.environ, "OUTPUT_DIR": str(tmp_path)}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
    (tmp_path / NAME).write_bytes(b"".join(make_event(step, loss=step) for step in range(5000)))
    out, _ = process.communicate()
    assert process.returncode == 0
    steps = [json.loads(line.partition("report ")[2])["step"] for line in out.split("\n")[:-1]]
    assert steps == list(range(5000))


def test_a_pass_uses_a_hundredth_of_a_processor() -> None:
    assert [find_pause(used) for used in (0.001, 0.1, 100)] == [2.0, 10.0, 60.0]
