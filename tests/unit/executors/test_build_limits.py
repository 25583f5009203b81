"""What the build of an environment may take: what the user has set, or a part of the host."""

from __future__ import annotations

import pytest

from riseml.base.errors import UsageError
from riseml.base.settings import read_settings
from riseml.executors.build_limits import BuildLimits, read_build_limits


def test_what_a_build_may_take_is_a_setting() -> None:
    assert read_build_limits(read_settings({})) == BuildLimits()
    limits = read_build_limits(read_settings({"RISEML_BUILD_MEM": "3GiB", "RISEML_BUILD_TIME": "60"}))
    assert (limits.find_most_mem(1024), limits.seconds) == (3072, 60.0)
    assert [BuildLimits().find_most_mem(most) for most in (2048, 12_000, 100_000)] == [2048, 8192, 50_000]
    with pytest.raises(UsageError, match="RISEML_BUILD_MEM is '1M'"):
        read_settings({"RISEML_BUILD_MEM": "1M"})
