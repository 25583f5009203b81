"""What the reader beside a job makes of a folder with runs of MLflow, and of a folder that is none."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from riseml.job_programs import mlflow_files
from riseml.job_programs.event_reader import EventReader
from riseml.job_programs.mlflow_files import read_metric_line
from riseml.store.logs.report_lines import split_report
from tests.support.event_files import make_event

BEGAN = 1795907621.0
Report = dict[str, float]


class Folder:
    """The folder of one job, as MLflow's client writes it."""

    def __init__(self, output: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.output = output
        self.folder = output / "mlruns"
        self.capture = capture
        self.reader = self.start_reader()
        self.errors = ""

    def start_reader(self, began: float = BEGAN) -> EventReader:
        trackers = ("tensorboard", "mlflow")
        self.reader = EventReader(str(self.output), 1, began, trackers=trackers, runs=str(self.folder))
        return self.reader

    def make_run(self, run: str, started: float = BEGAN, name: str = "") -> None:
        folder = self.folder / "0" / run
        (folder / "tags").mkdir(parents=True)
        (folder / "meta.yaml").write_text(f"run_name: x\nstart_time: {int(1000 * started)}\nstatus: 3\n")
        (folder / "tags" / "mlflow.runName").write_text(name)

    def log(self, run: str, metric: str, *lines: str) -> Path:
        path = self.folder / "0" / run / "metrics" / metric
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("".join(lines))
        return path

    def read(self, deadline: float = 0.0) -> list[Report]:
        self.reader.next_search = 0
        self.reader.read_new(deadline)
        out, errors = self.capture.readouterr()
        self.errors += errors
        reports = []
        for line in out.split("\n")[:-1]:
            _, report = split_report(line.encode())
            assert report is not None
            reports.append(json.loads(report.removeprefix(b"riseml.report ")))
        return reports


@pytest.fixture
def folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Folder:
    return Folder(tmp_path, capfd)


def line(seconds: float, value: object, step: int) -> str:
    return f"{int(1000 * (BEGAN + seconds))} {value} {step}\n"


def test_metrics_grow_and_runs_after_the_first_have_their_names(folder: Folder) -> None:
    folder.make_run("b", BEGAN + 2, "fold-2")
    folder.make_run("a", BEGAN + 1)
    folder.log("a", "loss", line(1, 0.5, 0), "17959076")
    folder.log("a", "val/acc", line(2, 1e-07, 3))
    folder.log("b", "loss", line(3, 9.0, 1).replace("\n", " digits c0ffee\n"))
    at = "riseml.at"
    assert folder.read() == [
        {at: BEGAN + 1, "step": 0, "loss": 0.5},
        {at: BEGAN + 2, "step": 3, "val/acc": 1e-07},
        {at: BEGAN + 3, "step": 1, "fold-2/loss": 9},
    ]
    assert folder.read() == []
    folder.log("a", "loss", line(4, "nan", -1)[8:])
    (nan,) = folder.read()
    assert (str(nan["loss"]), nan["step"], nan[at]) == ("nan", -1, BEGAN + 4)
    folder.make_run("c", BEGAN + 5)
    folder.log("c", "loss", line(6, 2, 0))
    assert [sorted(report) for report in folder.read()] == [["c/loss", at, "step"]]
    assert folder.errors == ""


def test_what_an_earlier_attempt_has_logged_is_not_read_again(folder: Folder) -> None:
    """Of a run that goes on, and of one that has ended; a run of this attempt keeps times that the code has chosen."""
    folder.make_run("old", BEGAN - 60, "old")
    folder.log("old", "loss", line(-50, 1, 1), line(2, 2, 2))
    folder.make_run("ended", BEGAN - 50, "ended")
    folder.log("ended", "loss", line(-40, 1, 1))
    assert [(report["step"], report["loss"]) for report in folder.read()] == [(2, 2)]
    folder.make_run("new", BEGAN + 1, "new")
    folder.log("new", "loss", line(-1000, 3, 3))
    assert [report["step"] for report in folder.read()] == [3]
    folder.start_reader(BEGAN + 60)
    assert folder.read() == []


def test_event_files_that_mlflow_has_copied_are_not_read(folder: Folder) -> None:
    name = "events.out.tfevents.1795904189.host.7"
    folder.make_run("a")
    (folder.folder / "0" / "a" / "artifacts").mkdir()
    for path in (folder.folder / "0" / "a" / "artifacts" / name, folder.output / name):
        path.write_bytes(make_event(1, BEGAN + 1, loss=1))
    folder.log("a", "loss", line(1, 1, 1))
    assert [sorted(report) for report in folder.read()] == [
        ["loss", "riseml.at", "step"],
        ["loss (mlflow)", "riseml.at", "step"],
    ]


@pytest.mark.parametrize("runs", ["", "http://there", "/elsewhere/mlruns", "mlruns"])
def test_a_folder_elsewhere_is_not_read(runs: str, folder: Folder) -> None:
    assert EventReader(str(folder.output), 1, BEGAN, trackers=("mlflow",), runs=runs).mlflow is None
    assert EventReader(str(folder.output), 1, BEGAN, runs=str(folder.folder)).mlflow is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1 x 2",
        "1 2 x",
        "-1 2 3",
        "9999999999999999 2 3",
        "1 2 1000000000000000",
        "999999999999999 2 3",
        " 1 2",
    ],
)
def test_a_line_without_a_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_metric_line(text.encode())


def test_a_hostile_folder_is_bounded(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that are none, a file without lines, pipes, links, and too many metrics and runs: each is told once."""
    monkeypatch.setattr(mlflow_files, "MOST_METRIC_FILES", 150)
    folder.make_run("a", name="a")
    folder.log("a", "bad", "\x00\x01\n", "1 2\n" * 3, line(1, 1, 1))
    with folder.log("a", "hole").open("r+b") as file:
        file.truncate(1 << 40)
    os.mkfifo(folder.folder / "0" / "a" / "metrics" / "pipe")
    (folder.folder / "0" / "a" / "metrics" / "link").symlink_to("/dev/zero")
    (folder.folder / "0" / "loop").symlink_to(folder.folder)
    os.mkfifo(folder.folder / "0" / "meta.yaml")
    for number in range(200):
        folder.log("a", f"many/{number:03}", line(1, number, 1))
    reports = folder.read(time.monotonic() + 60)
    names = {name for report in reports for name in report} - {"step", "riseml.at"}
    assert (len(names), "bad" in names, "hole" in names) == (100, True, False)
    words = ["lines that are no values", "it has no lines", "only 150 metrics of runs", "more than 100 metrics"]
    assert [folder.errors.count(word) for word in words] == [1, 1, 1, 1]
