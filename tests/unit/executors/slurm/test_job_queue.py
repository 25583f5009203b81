"""What the server knows of all jobs in Slurm's queue, without waiting for a controller that is busy or frozen."""

from __future__ import annotations

import pytest

from riseml.base.errors import RisemlError, Unreachable
from riseml.executors.slurm import job_queue
from riseml.executors.slurm.job_queue import JobQueue, QueueAnswer
from riseml.executors.slurm.queue_rows import QueueRow
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.model import NodeKind
from tests.support.waiting import DEADLINE, wait_for

ROW = QueueRow("7", "RUNNING", "None", "N/A", "riseml-a-4-1")
NODES = (NodeKind(3, 4, 4000, 0),)


class CountedCommands(SlurmCommands):
    """A Slurm that answers from memory, and counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: RisemlError | None = None
        self.asked: list[str] = []

    def list_jobs(self) -> list[QueueRow]:
        self._answer("jobs")
        return [ROW]

    def list_nodes(self, partition: str) -> tuple[NodeKind, ...]:
        self._answer(f"nodes of {partition}")
        return NODES

    def cancel(self, job: str) -> None:
        self._answer(f"cancel {job}")

    def _answer(self, question: str) -> None:
        self.asked.append(question)
        if self.failure is not None:
            raise self.failure


def test_the_first_reader_waits_and_the_next_ones_get_the_same_answer() -> None:
    commands = CountedCommands()
    queue = JobQueue(commands, "gpu")
    first = queue.read()
    assert (first.rows, first.nodes, first.trouble) == ((ROW,), NODES, "")
    assert queue.read() is first
    assert commands.asked == ["nodes of gpu", "jobs"]


def test_nodes_change_rarely_and_are_asked_for_rarely() -> None:
    commands = CountedCommands()
    queue = JobQueue(commands, "gpu")
    for _ in range(3):
        queue.ask_now()
    assert commands.asked == ["nodes of gpu", "jobs", "jobs", "jobs"]


def test_a_controller_that_has_never_answered_is_an_error_and_one_that_stops_leaves_its_last_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_queue, "_BETWEEN", 0.0)
    commands = CountedCommands()
    queue = JobQueue(commands, "")
    commands.failure = Unreachable("the controller does not answer")
    with pytest.raises(Unreachable):
        queue.read()
    assert queue.find_stamp() == 0
    commands.failure = None
    queue.read()
    stamp = queue.find_stamp()
    commands.failure = Unreachable("the controller does not answer")
    wait_for("the trouble is known", lambda: queue.read().trouble == "the controller does not answer", DEADLINE)
    assert queue.read().rows == (ROW,)
    assert queue.find_stamp() != stamp
    commands.failure = None
    wait_for("it answers", lambda: queue.read().trouble == "", DEADLINE)
    assert queue.find_stamp() == stamp


@pytest.mark.parametrize(
    ("failure", "words"),
    [(None, "and is cancelled"), (Unreachable("no answer"), "cannot be cancelled: no answer")],
)
def test_a_job_without_its_supervisor_is_cancelled_in_the_background(
    failure: RisemlError | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    commands = CountedCommands()
    commands.failure = failure
    JobQueue(commands, "").cancel_beside("7")
    wait_for("the end is logged", lambda: words in caplog.text, DEADLINE)
    assert commands.asked == ["cancel 7"]


@pytest.mark.parametrize(
    ("name", "job", "identity"),
    [("riseml-a-4-1", "", "9"), ("riseml-a-4-1", "7", "7"), ("riseml-b-4-1", "", None), ("riseml-a-4-1", "11", None)],
)
def test_a_job_is_found_by_its_id_or_as_the_last_of_its_name(name: str, job: str, identity: str | None) -> None:
    later = QueueRow("9", "PENDING", "None", "N/A", ROW.name)
    row = QueueAnswer((ROW, later), NODES, 0.0).find(name, job)
    assert (None if row is None else row.id) == identity
