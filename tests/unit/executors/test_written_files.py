"""Which files a job's written files are: those that an order wants, without caches."""

from __future__ import annotations

import pytest

from riseml.base.names import JobName
from riseml.executors.written_files import WrittenFile, WrittenRequest, is_cache
from riseml.model import JobKey
from riseml.spec.scalars.output_patterns import parse_output_pattern

KEY = JobKey(1, JobName("train"), 1)


@pytest.mark.parametrize(
    ("path", "is_one"),
    [("__pycache__/x", True), ("a/.cache/y", True), ("x.egg-info/PKG", True), ("a.pyc", True), ("cache/x", False)],
)
def test_caches(path: str, *, is_one: bool) -> None:
    assert is_cache(path) is is_one


def test_an_order_wants_files_of_the_working_folder() -> None:
    order = WrittenRequest(KEY, tuple(map(parse_output_pattern, ("./runs", "~/x", "*.pt"))))
    assert [path for path in ("runs/a", "b/runs/c", "x", "d/e.pt", "f") if order.wants(path)] == [
        "runs/a",
        "b/runs/c",
        "d/e.pt",
    ]
    assert WrittenFile("x").content is None
    assert parse_output_pattern(".").matches("any/file")
