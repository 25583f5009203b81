"""`notebook`: the idle time, and what is not a notebook."""

from __future__ import annotations

import pytest

from riseml.base.errors import UsageError
from riseml.cli.commands.notebook import parse_duration
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), (" 1d ", 86400)])
def test_an_idle_time_has_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "30", "0m", "-1h", "1.5h", "1h30m", "²h", "99999999999h"])
def test_other_idle_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_duration(text)


def test_a_notebook_that_is_none_is_refused(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    result = riseml("notebook", "4")
    assert (result.code, "4 is not a notebook" in result.err) == (2, True)
