"""The labels by which riseml finds its objects: what a container is, whatever else its labels say."""

from __future__ import annotations

import pytest

from riseml.base.names import JobName
from riseml.executors.docker import labels
from riseml.model import JobKey

KEY = JobKey(4, JobName("worker.1"), 2)
MARKS = labels.job_labels(KEY, "5e17e4", "paul.4.worker.1")


def test_a_job_is_found_again_by_its_labels() -> None:
    assert labels.parse_job_key(MARKS) == KEY
    assert labels.parse_job_key(MARKS | {"com.example": "of a user"}) == KEY
    assert labels.label_filter(labels.SERVER, MARKS[labels.SERVER]) == "io.riseml.server=5e17e4"


@pytest.mark.parametrize("missing", [labels.EXPERIMENT, labels.JOB, labels.ATTEMPT])
def test_labels_that_lack_a_part_name_no_job(missing: str) -> None:
    assert labels.parse_job_key({name: value for name, value in MARKS.items() if name != missing}) is None


@pytest.mark.parametrize("value", ["", "four", "4.0"])
def test_labels_with_another_value_name_no_job(value: str) -> None:
    assert labels.parse_job_key(MARKS | {labels.EXPERIMENT: value}) is None


@pytest.mark.parametrize(
    ("marks", "helps"),
    [
        ({labels.HELPER: "disk"}, True),
        ({labels.HELPER: ""}, False),  # inherited from an image of riseml
        ({}, False),
        (MARKS | {labels.HELPER: "disk"}, False),
    ],
)
def test_a_helper_works_for_no_job(marks: dict[str, str], *, helps: bool) -> None:
    assert labels.is_helper(marks) is helps


@pytest.mark.parametrize(("text", "number"), [("512", 512), ("", None), ("-1", None), ("1.5", None), ("\u00b2", None)])
def test_a_number_is_read_only_from_digits(text: str, number: int | None) -> None:
    assert labels.parse_mem({labels.MEM: text}) == (number or 0)
    assert labels.parse_experiment({labels.EXPERIMENT: text}) == number
