"""YAML text as nodes with positions, and texts that are none."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import check_config
from riseml.spec.yaml.document import MAX_BYTES


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"project: x\ntrain:\n  run: \xff\n", "riseml.yml:3:8: byte 0xff is not UTF-8; save the file as UTF-8"),
        ("project: x\n".encode("utf-16"), "riseml.yml:1:1: the file is UTF-16, not UTF-8; save it as UTF-8"),
        ("project: \u00e9\x07\n", 'riseml.yml:1:11: a control character that YAML does not allow: "\\x07"; remove it'),
        ("#" * (MAX_BYTES + 1), "riseml.yml:1:1: the file is too large: 1.0 MiB; at most 1 MiB is allowed"),
    ],
    ids=["latin-1", "utf-16", "bell", "large"],
)
def test_a_file_that_cannot_be_decoded_is_one_problem(content: str | bytes, expected: str) -> None:
    assert [str(problem) for problem in check_config(content).problems] == [expected]
