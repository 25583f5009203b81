"""`tensorboard`: the one of a running training is opened itself; another one is started, and ends with the command."""

from __future__ import annotations

import pytest

from riseml.cli import companion
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment, make_job

Forwards = list[tuple[str, int]]


@pytest.fixture
def forwards(monkeypatch: pytest.MonkeyPatch) -> Forwards:
    """The jobs and ports that were forwarded, instead of a forwarding that a user ends."""
    ends: Forwards = []
    monkeypatch.setattr(companion, "forward_companion", lambda _command, _client, _view, end, _make: ends.append(end))
    monkeypatch.setattr(companion, "find_port", lambda _client, _job, port: port + 1)
    monkeypatch.setattr(companion, "wait_until_it_listens", lambda _command, _client, _experiment, port: port)
    return ends


def test_the_tensorboard_of_a_running_training_is_opened_itself(
    riseml: Riseml, fake_server: FakeServer, forwards: Forwards
) -> None:
    fake_server.experiments["4"] = make_experiment(jobs=[make_job("4.master"), make_job("4.tensorboard")])
    assert riseml("tensorboard").code == 0
    assert forwards == [("4.tensorboard", 6007)]
    assert not any("POST" in question for question in fake_server.asked)


def test_another_one_is_started_for_the_command_alone(
    riseml: Riseml, fake_server: FakeServer, forwards: Forwards
) -> None:
    fake_server.experiments["4"] = make_experiment(jobs=[make_job("4.tensorboard", state="FINISHED")])
    started = make_experiment("9", type="tensorboard", shows=["4", "7"], jobs=[])
    fake_server.answers["POST /tensorboards"] = (200, started)
    fake_server.answers["POST /experiments/9/kill"] = (200, started)
    done = riseml("tensorboard", "4")
    assert (done.code, forwards) == (0, [("9.tensorboard", 6006)]), done.err
    assert "TensorBoard of 4, 7 is job 9.tensorboard. Ctrl-C ends it." in done.err
    assert fake_server.asked[-1] == "POST /experiments/9/kill"


def test_one_that_has_ended_names_the_command_for_a_new_one(
    riseml: Riseml, fake_server: FakeServer, forwards: Forwards
) -> None:
    ended = make_experiment("9", type="tensorboard", state="KILLED", shows=["4", "7"], jobs=[])
    fake_server.experiments["9"] = ended
    refused = riseml("tensorboard", "9")
    assert (refused.code, forwards) == (4, [])
    assert "the TensorBoard 9 has ended (KILLED)" in refused.err
    assert "`riseml tensorboard 4 7` starts one" in refused.err
