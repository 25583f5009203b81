"""The jobs that a command names: of an experiment, or of a file that has not run yet."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, UsageError
from riseml.cli.context import CommandContext
from riseml.cli.job_choice import choose_jobs, get_single_word, refuse_changes, select_jobs
from riseml.cli.output.printer import Printer
from riseml.client.server_client import Client
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment

VALUES = {"master": 1, "worker.1": 2, "worker.2": 3, "worker2.1": 4}


@pytest.mark.parametrize(
    ("job", "names"),
    [
        (None, ["master", "worker.1", "worker.2", "worker2.1"]),
        ("worker", ["worker.1", "worker.2"]),
        ("worker.2", ["worker.2"]),
    ],
)
def test_a_role_stands_for_its_jobs(job: str | None, names: list[str]) -> None:
    assert list(select_jobs(VALUES, job)) == names


def test_a_job_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(NotFound, match="there is no job work") as refused:
        select_jobs(VALUES, "work")
    assert refused.value.hint == "the jobs are master, worker.1, worker.2, worker2.1"


@pytest.mark.parametrize(
    ("words", "identity"),
    [
        ([], "4"),
        (["4"], "4"),
        (["4.worker.1"], "4.worker.1"),
        (["4", "worker.1"], "4.worker.1"),
        (["4.master", "worker"], "4.worker"),
        (["paul.144.1", "master"], "paul.144.1.master"),
    ],
)
def test_an_id_and_a_job_may_be_one_word_or_two(
    client: Client, fake_server: FakeServer, folder: Path, words: list[str], identity: str
) -> None:
    fake_server.experiments["4"] = make_experiment()
    command = CommandContext(Printer(io.StringIO(), io.StringIO()), {}, folder)
    assert choose_jobs(command, client, words).identity == identity


def test_words_and_options_that_mean_nothing_are_refused(riseml: Riseml, fake_server: FakeServer) -> None:
    with pytest.raises(UsageError, match="'ps' is one word too many"):
        get_single_word(["worker", "ps"])
    with pytest.raises(UsageError, match="change a file, not an experiment"):
        refuse_changes(["lr=1"], None)
    refused = riseml("env", "4", "-p", "lr=1")
    assert (refused.code, fake_server.asked) == (2, [])


def test_a_file_with_errors_is_not_planned(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    (folder / "riseml.yml").write_text("project: a\n")
    refused = riseml("env", "-f", "riseml.yml")
    assert (refused.code, refused.out, fake_server.asked) == (2, "", [])
    assert refused.err.endswith("riseml.yml has 1 problem.\n")
