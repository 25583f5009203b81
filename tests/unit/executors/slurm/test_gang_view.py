"""What the server sees of gangs, from their records and what Slurm says."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from riseml.base.names import JobName
from riseml.base.states import Reason
from riseml.executors.slurm.gang_folder import GangFolder, GangFolders, GangKey
from riseml.executors.slurm.gang_view import LOST, GangWatch
from riseml.executors.slurm.job_queue import JobQueue, QueueAnswer
from riseml.executors.slurm.queue_rows import parse_queue
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.executors.supervision.output_log import STDOUT, OutputLog
from riseml.model import ContainerObservation, JobKey, NodeKind

NODES = (NodeKind(3, 4, 4000, 0),)
MASTER, PS = JobName("master"), JobName("ps.1")


class View:
    """One gang in a folder, a clock, and what Slurm says."""

    def __init__(self, root: Path) -> None:
        self.now = 100.0
        self.folder: GangFolder = GangFolders(root).open_gang(GangKey(4, 1))
        self.folder.make()
        self.folder.write_gang({"shape": "one node"}, {MASTER: {}, PS: {}})
        folders, queue = GangFolders(root), JobQueue(SlurmCommands(), "")
        self.watch = GangWatch(folders, queue, lambda key: "riseml-a-4-1", lambda: self.now)

    def look(self, squeue: str = "", trouble: str = "") -> dict[JobName, ContainerObservation]:
        """Return what is seen of each role."""
        answer = QueueAnswer(tuple(parse_queue(squeue)), NODES, self.now, trouble)
        return {one.key.job: one for one in self.watch.observe(answer)}

    def write(self, name: str, **content: Any) -> None:
        """Write what the supervisor writes."""
        (self.folder.path / name).write_text(json.dumps(content))


def test_a_gang_that_was_not_submitted_is_in_no_queue(tmp_path: Path) -> None:
    found = View(tmp_path).look()
    assert [(one.started, one.waits, one.error) for one in found.values()] == [(False, "", "")] * 2


def test_a_gang_that_waits_says_why_and_in_which_shape(tmp_path: Path) -> None:
    view = View(tmp_path)
    view.folder.write_job("7")
    found = view.look("7|PENDING|Resources|N/A|riseml-a-4-1\n")
    assert found[MASTER].waits == (
        "Slurm job 7 waits: the nodes that it needs are not free yet (Resources); it asks for one node"
    )
    assert "does not answer" in view.look(trouble="the controller does not answer")[PS].waits


def test_a_role_that_runs_has_its_place_and_one_that_has_ended_its_end(tmp_path: Path) -> None:
    view = View(tmp_path)
    master = {"host": "10.0.0.1", "port": 7, "node": "n1", "started_at": 1.0}
    ps = {"host": "10.0.0.2", "port": 8, "started_at": 1.0, "finished_at": 2.0, "exit_code": 143, "ending": "CASCADE"}
    view.write("state.json", job="7", roles={"master": master, "ps.1": {**ps, "error": ""}})
    found = view.look("7|RUNNING|None|N/A|riseml-a-4-1\n")
    assert (found[MASTER].running, found[MASTER].address, found[MASTER].port) == (True, "10.0.0.1", 7)
    assert (found[MASTER].node, found[PS].node) == ("n1", None)
    assert (found[PS].exit_code, found[PS].ending, found[PS].error) == (143, Reason.CASCADE, "")


def test_a_role_over_its_memory_says_so_with_and_without_a_record_of_its_supervisor(tmp_path: Path) -> None:
    view = View(tmp_path)
    roles = {
        "master": {"started_at": 1.0, "finished_at": 2.0, "exit_code": 137, "oom": True},
        "ps.1": {"started_at": 1.0},
    }
    view.write("state.json", job="7", roles=roles)
    view.write("ps.1.exit", exit_code=137, error="", finished_at=2.0)
    (view.folder.path / "ps.1.srun").write_text("srun: error: n1: task 0: Out Of Memory\n")
    view.look("7|FAILED|None|N/A|riseml-a-4-1\n")
    view.now += 11.0
    found = view.look("7|FAILED|None|N/A|riseml-a-4-1\n").values()
    assert [(one.exit_code, one.oom, one.error) for one in found] == [(137, True, "")] * 2


def test_silence_of_the_controller_ends_nothing(tmp_path: Path) -> None:
    view = View(tmp_path)
    view.write("state.json", job="7", roles={"master": {"started_at": 1.0}, "ps.1": {"started_at": 1.0}})
    for _ in range(3):
        view.now += 1000.0
        assert all(one.running for one in view.look(trouble="the controller does not answer").values())


def test_a_job_that_slurm_has_ended_without_a_record_is_lost_after_a_moment(tmp_path: Path) -> None:
    view = View(tmp_path)
    view.write("state.json", job="7", roles={"master": {"started_at": 1.0}, "ps.1": {"started_at": 1.0}})
    over = "7|NODE_FAIL|None|N/A|riseml-a-4-1\n"
    assert view.look(over)[MASTER].running
    view.now += 5.0
    assert view.look(over)[MASTER].running
    view.write("ps.1.exit", exit_code=3, finished_at=2.0)
    view.now += 10.0
    found = view.look(over)
    assert (found[PS].exit_code, "a node of the job failed" in found[PS].error) == (3, True)
    assert found[MASTER].running, "it may run on behind a partition until it notices that it is alone"
    view.now += 60.0
    found = view.look(over)
    assert (found[MASTER].exit_code, "a node of the job failed" in found[MASTER].error) == (LOST, True)


def test_a_job_that_slurm_has_ended_on_nodes_that_answer_is_over_at_once(tmp_path: Path) -> None:
    view = View(tmp_path)
    view.write("state.json", job="7", roles={"master": {"started_at": 1.0}, "ps.1": {"started_at": 1.0}})
    over = "7|CANCELLED|None|N/A|riseml-a-4-1\n"
    assert view.look(over)[MASTER].running
    view.now += 11.0
    assert view.look(over)[MASTER].exit_code == LOST


@pytest.mark.parametrize("state", ["PREEMPTED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "FAILED", ""])
def test_a_wrapper_alone_does_not_know_that_slurm_has_ended_its_job(state: str, tmp_path: Path) -> None:
    """Without its supervisor's record, an exit code counts only as far as Slurm cannot be its cause."""
    view = View(tmp_path)
    view.write("state.json", job="7", roles={"master": {"started_at": 1.0}, "ps.1": {"started_at": 1.0}})
    view.write("master.exit", exit_code=0, error="", finished_at=2.0)
    view.write("ps.1.exit", exit_code=143, error="", finished_at=2.0)
    over = f"7|{state}|None|N/A|riseml-a-4-1\n" if state else ""
    view.look(over)
    view.now += 20.0
    view.look(over)
    view.now += 20.0
    found = view.look(over)
    assert (found[MASTER].exit_code, found[PS].exit_code) == (0, 143)
    assert bool(found[MASTER].error) is (state in ("PREEMPTED", "CANCELLED", "TIMEOUT"))
    assert bool(found[PS].error) is (state != "FAILED")


def test_a_role_that_has_printed_has_run_also_when_its_supervisor_has_not_said_so(tmp_path: Path) -> None:
    """A full disk, or the loss of the node, may cost the record of its start; its log is read before it is removed."""
    view = View(tmp_path)
    view.write("state.json", job="7", roles={})
    for role in (MASTER, PS):
        OutputLog(str(view.folder.log_path(role))).write_output(STDOUT, b"line 1\n")
    view.write("master.exit", exit_code=3, error="", finished_at=time.time())
    for _ in range(3):
        found = view.look("7|FAILED|None|N/A|riseml-a-4-1\n")
        view.now += 11.0
    assert [(one.started, one.exit_code) for one in (found[MASTER], found[PS])] == [(True, 3), (True, LOST)]


@pytest.mark.parametrize(("state", "ending"), [("CANCELLED", Reason.ENGINE_STOPPED), ("FAILED", None)])
def test_a_job_that_slurm_has_ended_before_its_start_says_who_did(
    state: str, ending: Reason | None, tmp_path: Path
) -> None:
    view = View(tmp_path)
    view.folder.write_job("7")
    over = f"7|{state}|None|N/A|riseml-a-4-1\n"
    view.look(over)
    view.now += 20.0
    found = view.look(over)[MASTER]
    assert (found.started, found.ending, bool(found.error)) == (False, ending, True)


def test_a_role_that_slurm_has_ended_without_a_record_does_not_run(tmp_path: Path) -> None:
    view = View(tmp_path)
    view.write("state.json", job="7", roles={"master": {"started_at": 1.0}, "ps.1": {"started_at": 1.0}})
    key = view.look("7|RUNNING|None|N/A|riseml-a-4-1\n")[MASTER].key
    assert view.watch.runs(key)
    for _ in range(2):
        view.look("7|CANCELLED|None|N/A|riseml-a-4-1\n")
        view.now += 11.0
    view.look("7|CANCELLED|None|N/A|riseml-a-4-1\n")
    assert not view.watch.runs(key), "who follows its log has all of it"


def test_a_supervisor_without_a_sign_of_life_is_dead_unless_slurm_has_suspended_it(tmp_path: Path) -> None:
    view = View(tmp_path)
    claim = view.folder.path / "claim"
    claim.write_text("7")

    def find_dead(state: str, passed: float, trouble: str = "", step: float = 10.0) -> list[str]:
        rows, found = tuple(parse_queue(f"7|{state}|None|N/A|riseml-a-4-1\n")), []
        for _ in range(max(1, int(passed / step))):
            view.now += min(passed, step)
            found += view.watch.find_dead_jobs(QueueAnswer(rows, NODES, view.now, trouble))
        return found

    assert find_dead("RUNNING", 0.0) == find_dead("RUNNING", 80.0) == []
    os.utime(claim, (1, 1))
    assert find_dead("RUNNING", 90.0) == []
    assert find_dead("RUNNING", 20.0) == ["7"]
    assert find_dead("RUNNING", 80.0) == find_dead("SUSPENDED", 80.0) == find_dead("RUNNING", 80.0) == []
    assert find_dead("RUNNING", 80.0, "no answer") == find_dead("RUNNING", 80.0) == []
    os.utime(claim, (2, 2))
    assert find_dead("RUNNING", 600.0, step=600.0) == [], "the shared folder hung, for the server as well"
    view.write("verdict.json", done=True, job="7", roles={})
    assert find_dead("RUNNING", 200.0) == []


def test_a_job_that_slurm_has_forgotten_never_started(tmp_path: Path) -> None:
    view = View(tmp_path)
    view.folder.write_job("7")
    view.look("7|PENDING|Priority|N/A|riseml-a-4-1\n")
    view.now += 1.0
    assert not view.look()[MASTER].error
    view.now += 20.0
    found = view.look()[MASTER]
    assert (found.started, "does not know job 7 any more" in found.error) == (False, True)


def test_nothing_is_noted_of_a_gang_whose_folder_is_gone(tmp_path: Path) -> None:
    view = View(tmp_path)
    view.folder.write_job("7")
    (view.folder.path / "claim").write_text("7")
    view.look("7|COMPLETED|None|N/A|riseml-a-4-1\n")
    running = tuple(parse_queue("7|RUNNING|None|N/A|riseml-a-4-1\n"))
    view.watch.find_dead_jobs(QueueAnswer(running, NODES, view.now))
    notes = (view.watch._over_since, view.watch._lives, view.watch._submitted_seen)
    assert [len(one) for one in notes] == [1, 1, 1]
    for role in (MASTER, PS):
        view.folder.remove_role(role)
    assert view.look() == {}
    assert [len(one) for one in notes] == [0, 0, 0]


def test_the_records_of_a_gang_that_has_ended_count_whatever_slurm_says(tmp_path: Path) -> None:
    view = View(tmp_path)
    ends = {"started_at": 1.0, "finished_at": 2.0, "exit_code": 0, "error": ""}
    view.write("verdict.json", done=True, job="7", roles={"master": ends, "ps.1": ends})
    for _ in range(2):
        view.now += 100.0
        assert {one.exit_code for one in view.look().values()} == {0}


@pytest.mark.parametrize(
    "state",
    [
        {"roles": 3},
        {"roles": {"master": 3}},
        {"roles": {"master": {"started_at": "now"}}},
        {"roles": {"master": {"started_at": 1e300}}, "job": ["7"]},
        {"roles": {"master": {"started_at": 1.0, "finished_at": [], "exit_code": "0", "error": 7, "host": {}}}},
    ],
)
def test_whatever_a_role_puts_in_the_place_of_records_the_other_gangs_are_seen(
    tmp_path: Path, state: dict[str, Any]
) -> None:
    view, other = View(tmp_path), GangFolders(tmp_path).open_gang(GangKey(5, 1))
    other.make()
    other.write_gang({"shape": "one node"}, {JobName("train"): {}})
    view.folder.write_job("7")
    view.write("state.json", **state)
    view.write("gang.json", stop_grace="long")
    view.write("master.exit", exit_code="7", finished_at="soon")
    os.mkfifo(view.folder.path / "claim")
    os.mkfifo(view.folder.path / "master.srun")
    for _ in range(2):
        found = view.look("7|NODE_FAIL|None|N/A|riseml-a-4-1\n")
        assert JobName("train") in found
        assert found[MASTER].exit_code in (None, LOST)
        view.now += 1000.0


def test_a_state_that_has_not_changed_is_read_once_for_all_followers_of_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = View(tmp_path)
    read: list[GangKey] = []
    roles = {"master": {"started_at": 1.0}, "ps.1": {"started_at": 1.0}}
    view.write("state.json", roles=roles)
    look = GangFolder.read_state

    def count(folder: GangFolder) -> dict[str, Any]:
        read.append(folder.key)
        return look(folder)

    monkeypatch.setattr(GangFolder, "read_state", count)
    monkeypatch.setattr(GangFolder, "list_roles", lambda _: pytest.fail("the other roles do not matter"))
    keys = [JobKey(4, role, 1) for role in (MASTER, PS)]
    assert [view.watch.runs(key) for key in keys * 3] == [True] * 6
    assert len(read) == 1
    roles["master"].update(finished_at=2.0, exit_code=0)
    view.write("state.json", roles=roles)
    assert [view.watch.runs(key) for key in keys] == [False, True]
    assert not view.watch.runs(JobKey(4, JobName("gone"), 1))
    assert len(read) == 2


def test_a_role_that_left_no_record_ends_with_the_last_sign_of_life_of_its_supervisor(tmp_path: Path) -> None:
    """The server may look much later."""
    view = View(tmp_path)
    view.write("state.json", job="7", roles={"master": {"started_at": 100.0}, "ps.1": {"started_at": 1000.0}})
    view.write("claim")
    os.utime(view.folder.path / "claim", (500.0, 500.0))
    for _ in range(3):
        found = view.look("7|FAILED|None|N/A|riseml-a-4-1\n")
        view.now += 11.0
    ends = [found[role].finished_at for role in (MASTER, PS)]
    assert ends == [datetime.fromtimestamp(500.0, UTC), datetime.fromtimestamp(1000.0, UTC)]


def test_a_role_has_run_for_the_time_that_its_supervisor_measured(tmp_path: Path) -> None:
    view = View(tmp_path)
    ended = {"started_at": 100.0, "finished_at": 3712.5, "exit_code": 0, "ran": 12.5}
    view.write("state.json", job="7", roles={"master": ended, "ps.1": {**ended, "ran": "long"}})
    found = view.look("7|RUNNING|None|N/A|riseml-a-4-1\n")
    assert (found[MASTER].ran, found[PS].ran) == (12.5, None)
