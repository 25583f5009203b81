"""The layers of a pull or a push, folded into one number."""

from __future__ import annotations

from typing import Any

from riseml.executors.base import Work, WorkReport
from riseml.executors.docker.layers import LayerProgress


def make_line(name: str, status: str, current: int = 0, total: int = 0) -> dict[str, Any]:
    detail = {"current": current, "total": total} if total else {}
    return {"id": name, "status": status, "progressDetail": detail}


def fold(*lines: dict[str, Any], work: Work = Work.PULL) -> list[tuple[int, int | None] | None]:
    """Return done and total after each line."""
    folded = LayerProgress(work, "python:3.11")
    reports = [folded.add_line(line) for line in lines]
    assert all(
        report is None or report == WorkReport(work, "python:3.11", report.progress, report.total) for report in reports
    )
    return [None if report is None else (report.progress, report.total) for report in reports]


def test_the_layers_of_a_pull_are_one_sum_and_the_whole_is_known_once_every_layer_has_begun() -> None:
    assert fold(
        make_line("3.11", "Pulling from library/python"),
        make_line("a", "Pulling fs layer"),
        make_line("b", "Pulling fs layer"),
        make_line("c", "Already exists"),
        make_line("a", "Downloading", 10, 100),
        make_line("b", "Waiting"),
        make_line("b", "Downloading", 5, 50),
        make_line("a", "Verifying Checksum"),
        make_line("a", "Extracting", 30, 100),
        make_line("b", "Download complete"),
        make_line("b", "Pull complete"),
        {"status": "Digest: sha256:0"},
    ) == [
        None,
        (0, None),
        (0, None),
        (0, None),
        (10, None),
        (10, None),
        (15, 150),
        (105, 150),
        (105, 150),
        *[(150, 150)] * 2,
        None,
    ]


def test_a_layer_without_a_reported_size_counts_nothing() -> None:
    lines = [make_line("a", "Pulling fs layer"), make_line("a", "Download complete"), make_line("a", "Pull complete")]
    assert fold(*lines) == [(0, None), (0, 0), (0, 0)]


def test_a_push() -> None:
    lines = [
        make_line("a", "Preparing"),
        make_line("b", "Layer already exists"),
        make_line("a", "Pushing", 5, 9),
        make_line("a", "Pushed"),
        {"status": "", "aux": {"Digest": "sha256:0"}},
    ]
    assert fold(*lines, work=Work.SEND) == [(0, None), (0, None), (5, 9), (9, 9), None]
