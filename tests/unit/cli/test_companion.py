"""`tensorboard` and `notebook`: what they say before anything starts, and how `status` shows them."""

from __future__ import annotations

import socket
from datetime import UTC, datetime

import pytest

from riseml.cli.commands.notebook import parse_duration
from riseml.cli.output.experiment_views import list_experiment, list_experiments
from riseml.cli.output.style import Style
from riseml.errors import UsageError
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment

NOW = datetime(2026, 8, 31, 8, tzinfo=UTC)
PLAIN = Style(colour=False, width=200)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), (" 1d ", 86400)])
def test_an_idle_time_has_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "30", "0m", "-1h", "1.5h", "1h30m", "²h", "99999999999h"])
def test_other_idle_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_duration(text)


@pytest.mark.parametrize("verb", ["tensorboard 4", "notebook"])
def test_a_port_in_use_is_said_before_anything_starts(riseml: Riseml, fake_server: FakeServer, verb: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = riseml(*verb.split(), "--port", str(port))
    assert (result.code, f"port {port} of this machine is in use" in result.err) == (4, True)
    assert not fake_server.asked


def test_a_notebook_that_is_none_is_refused(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    result = riseml("notebook", "4")
    assert (result.code, "4 is no notebook" in result.err) == (2, True)


def test_status_says_what_a_companion_is() -> None:
    one = make_experiment("9", type="tensorboard", shows=["4", "144"], output="", jobs=[])
    assert "TensorBoard of 4, 144" in "\n".join(list_experiments([one], NOW, PLAIN))
    shown = "\n".join(list_experiment(one, NOW, PLAIN))
    assert "Type: TensorBoard of 4, 144" in shown
    assert "Output" not in shown
