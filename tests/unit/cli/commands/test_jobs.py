"""`exec` and `shell`: which job, and which words are the command's."""

from __future__ import annotations

import pytest

from riseml.base.stream_messages import CommandRequest
from riseml.cli.context import CommandContext
from riseml.client.exchange import Address
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment, make_job

Runs = list[tuple[str, tuple[str, ...]]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The jobs in which something was run, and its command."""
    found: Runs = []

    def run(_address: Address, job: str, order: CommandRequest) -> int:
        found.append((job, order.command))
        return 0

    monkeypatch.setattr("riseml.cli.job_command.run_in_job", run)
    return found


@pytest.mark.parametrize("before", [(), ("--debug",)])
@pytest.mark.parametrize("command", [("torchrun", "--debug", "--", "x"), ("--", "train.py", "--debug")])
def test_a_job_s_command_keeps_its_own_debug(
    riseml: Riseml, fake_server: FakeServer, runs: Runs, before: tuple[str, ...], command: tuple[str, ...]
) -> None:
    fake_server.experiments["4"] = make_experiment("4", jobs=[make_job("4.master")])
    assert riseml(*before, "exec", "4", *command).code == 0
    assert runs == [("4.master", tuple(word for at, word in enumerate(command) if at or word != "--"))]


@pytest.mark.parametrize("answer", ["worker.1", "144.1.worker.1", "2"])
def test_a_job_of_a_set_s_experiment_is_chosen_by_its_name(
    riseml: Riseml, fake_server: FakeServer, runs: Runs, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    jobs = [make_job("144.1.master"), make_job("144.1.worker.1")]
    fake_server.experiments["144"] = make_experiment("144.1", jobs=jobs)
    monkeypatch.setattr(CommandContext, "ask_for_text", lambda _context, _question: answer)
    done = riseml("exec", "144.1", "--", "true", asks=True)
    assert (done.code, runs) == (0, [("144.1.worker.1", ("true",))]), done.err
