"""What `show` prints of one experiment."""

from __future__ import annotations

from tests.unit.cli.conftest import Riseml


def test_show_takes_one_view_at_a_time(riseml: Riseml) -> None:
    result = riseml("show", "4", "--capsule", "--saved")
    assert result.code == 2
    assert result.err.splitlines()[0] == "error: `--capsule` and `--saved` are two views"
