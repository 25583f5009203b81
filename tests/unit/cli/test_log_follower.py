"""A log that is printed to its end: what comes last, and a server that is lost meanwhile."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from riseml.cli.context import CommandContext
from riseml.cli.output.printer import Printer
from riseml.client.server_client import Address, Client
from riseml.submission import local_server
from riseml.submission.reconnection import make_reconnect
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
    assert shown.count("Last lines of 4.worker.1:\n") == 1
    assert [text.strip() for text in shown.partition("Last lines of 4.worker.1:\n")[2].splitlines()[:10]] == said[-10:]
    assert re.search(r"^ *Output:? +/output/paul/ai-toaster/4$", shown, re.MULTILINE)


CLASSIC = ["4             | [2026-08-31T07:23:46Z] --> RUNNING", "4.master      | [2026-08-31T07:23:46Z] hello"]


@pytest.mark.parametrize("words", ["train", "logs 4"])
def test_the_transcript_of_riseml_stays_available(riseml: Riseml, fake_server: FakeServer, words: str) -> None:
    finish(fake_server)
    shown = riseml(*words.split(), environ={"RISEML_LOG": "classic"}).out.splitlines()
    assert [text for text in CLASSIC if text in shown] == CLASSIC
    assert shown[-2:] == ["Experiment 4 FINISHED", "Output: /output/paul/ai-toaster/4"]
    long = riseml(*words.split(), "--long", environ={"RISEML_LOG": "brief"}).out
    assert [text for text in CLASSIC if text in long.splitlines()] == CLASSIC
    assert "\n4.master    RUNNING" in long, "every job at the end"


@pytest.mark.parametrize("words", ["train", "logs 4", "rerun 4"])
@pytest.mark.parametrize("form", ["clasic", "json", "CLASSIC"])
def test_an_unknown_form_is_refused_before_anything_starts(
    riseml: Riseml, fake_server: FakeServer, words: str, form: str
) -> None:
    finish(fake_server)
    result = riseml(*words.split(), environ={"RISEML_LOG": form})
    assert (result.code, result.out, fake_server.bodies) == (2, "", [])
    assert result.err == f"error: RISEML_LOG is {form!r}\nhint: write classic or brief, or unset it for brief\n"


@pytest.mark.parametrize("option", ["--long=3", "--longer", "--no-long"])
@pytest.mark.parametrize("words", ["train", "logs 4"])
def test_a_wrong_form_of_long_is_refused_with_what_is_right(riseml: Riseml, words: str, option: str) -> None:
    result = riseml(*words.split(), option)
    assert (result.code, result.out) == (2, "")
    assert option.partition("=")[0] in result.err
    assert "hint: " in result.err


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
