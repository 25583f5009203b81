"""A log that is printed to its end: what comes last, and a server that is lost meanwhile."""

from __future__ import annotations

import io
from typing import Any

import pytest

from riseml.cli import local_server
from riseml.cli.context import CommandContext
from riseml.cli.log_follower import make_reconnect
from riseml.cli.output.printer import Printer
from riseml.client.server_client import Address, Client
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, finish, make_experiment, state


@pytest.mark.parametrize("words", ["train", "logs 4", "train -l"])
def test_the_end_of_a_failed_experiment_shows_its_last_lines(
    riseml: Riseml, fake_server: FakeServer, words: str
) -> None:
    finish(fake_server, state_name="FAILED", exit_code=7, message="exit code 7", cause="worker.1")
    said = [str(number) for number in range(15)]
    fake_server.experiments["4"] |= {"state": "FAILED", "cause": "worker.1", "last_lines": said}
    shown = riseml(*words.split()).out
    assert shown.count("\nLast lines of 4.worker.1:\n" + "".join(f"  {text}\n" for text in said[-10:])) == 1
    assert "Output: /output/paul/ai-toaster/4\n" in shown


@pytest.mark.parametrize(
    ("identity", "changes", "said"),
    [
        ("4", {}, ["TensorBoard: http://127.0.0.1:40001 (`riseml tensorboard 4` opens it)"]),
        ("4", {"tensorboard": None}, ["TensorBoard: `riseml tensorboard 4` opens it"]),
        ("4", {"state": "FINISHED", "tensorboard": None}, []),
        ("4.1", {"type": "set", "tensorboard": None}, ["TensorBoard: `riseml tensorboard 4` opens it"]),
        ("4.2", {"type": "set", "tensorboard": None}, []),
    ],
)
def test_a_log_says_where_tensorboard_is(
    riseml: Riseml, fake_server: FakeServer, identity: str, changes: dict[str, Any], said: list[str]
) -> None:
    finish(fake_server)
    fake_server.entries.insert(1, state("RUNNING", 5, job=f"{identity}.tensorboard"))
    fake_server.experiments["4"] = make_experiment(**{"tensorboard": "http://127.0.0.1:40001"} | changes)
    shown = riseml("logs", "4").out.splitlines()
    assert [text for text in shown if text.startswith("TensorBoard")] == said
    assert not any(text.startswith("TensorBoard") for text in riseml("logs", "4", "--no-follow").out.splitlines())


@pytest.mark.parametrize(("words", "told"), [("logs 4 --tail 5", True), ("logs 4", False)])
def test_a_tail_before_the_first_output_says_why_it_is_empty(
    riseml: Riseml, fake_server: FakeServer, words: str, *, told: bool
) -> None:
    finish(fake_server)
    fake_server.experiments["4"] |= {"state": "PENDING"}
    assert ("4 is PENDING" in riseml(*words.split()).err) == told


@pytest.mark.parametrize("name", ["FINISHED", "FAILED", "KILLED"])
def test_logs_of_an_ended_experiment_end_with_0(riseml: Riseml, fake_server: FakeServer, name: str) -> None:
    finish(fake_server, state_name=name)
    assert riseml("logs", "4").code == 0


def test_a_lost_server_is_started_again_however_often_it_is_lost(
    fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of time begins again with each new server, and not with one that answers and gives no log."""
    pids = [*range(100, 136), 135]
    monkeypatch.setattr(local_server, "restore_server", lambda client, settings, tell: {"pid": pids.pop(0)})
    printer = Printer(io.StringIO(), io.StringIO())
    context = CommandContext(printer, {"RISEML_HOME": str(fake_server.home)}, fake_server.home)
    with Client(Address(fake_server.home / "server.sock")) as client:
        reconnect = make_reconnect(context, client)
        answers = [reconnect(tries) for tries in range(40)]
    assert answers == [*[False] * 3, *[True] * 36, False]
    assert not pids, "it asked for a server each time that the client could not reach one"
