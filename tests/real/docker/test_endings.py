"""Every ending of an experiment (table in riseml/job_programs/gang_rules.py), with real containers and processes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.rig import GO, HOG, Rig, filter_entries, gang, single
from tests.support.waiting import DEADLINE, wait_for

pytestmark = pytest.mark.every_engine


@dataclass(frozen=True)
class Ending:
    """What the jobs do, and how the experiment must end. When `leader` has ended, jobs that wait with `GO` go on."""

    script: dict[str, str]
    state: str
    reason: str
    cause: str | None = None
    message: str = ""
    jobs: dict[str, str] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    leader: str | None = None


TRAPPED = "trap 'exit 0' TERM; sleep 600 & wait"
SAVES = """
import os, pathlib, signal, time
output = pathlib.Path(os.environ["OUTPUT_DIR"])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # else it could come just before the wait
(output / "ready").touch()
signal.sigwait({signal.SIGTERM})
print("saving")
time.sleep(1)
(output / "saved").touch()
print("saved")
"""
DEAF = "trap '' TERM; while :; do sleep 1; done"

ENDINGS = {
    "the master ends well: the workers have their grace, then all is stopped": Ending(
        {"master": "exit 0"},
        "FINISHED",
        "COMPLETED",
        jobs={"master": "FINISHED", "worker.1": "FINISHED", "ps.1": "FINISHED"},
        keys={"finish_grace": 1},
    ),
    "all end well: the ps is stopped": Ending(
        {"master": "exit 0", "worker.1": "exit 0", "worker.2": "exit 0"},
        "FINISHED",
        "COMPLETED",
        jobs={"ps.1": "FINISHED"},
    ),
    "a worker fails within the grace after a good end: no failure": Ending(
        {"master": "exit 0", "worker.1": f"{GO}; exit 3", "worker.2": "exit 0"},
        "FINISHED",
        "COMPLETED",
        jobs={"worker.1": "FAILED"},
        keys={"finish_grace": DEADLINE},
        leader="master",
    ),
    "the master fails": Ending(
        {"master": "echo last line; exit 7"},
        "FAILED",
        "EXIT_CODE",
        "master",
        "exit code 7",
        {"master": "FAILED", "worker.1": "KILLED", "worker.2": "KILLED", "ps.1": "KILLED"},
    ),
    "a worker fails": Ending({"worker.2": "exit 9"}, "FAILED", "EXIT_CODE", "worker.2", "exit code 9"),
    "a worker is killed by a signal": Ending(
        {"worker.1": "kill -SEGV $$"}, "FAILED", "SIGNAL", "worker.1", "exit code 139 (SIGSEGV)"
    ),
    "a worker ends well early: nothing happens": Ending(
        {"master": GO, "worker.1": "exit 0", "worker.2": "exit 0"},
        "FINISHED",
        "COMPLETED",
        jobs={"worker.1": "FINISHED"},
        leader="worker.1",
    ),
    "the ps ends before the verdict, even well": Ending({"ps.1": "exit 0"}, "FAILED", "SERVICE_ENDED", "ps.1"),
    "the run command is not there": Ending(
        {"master": "no-such-command"}, "FAILED", "EXIT_CODE", "master", "exit code 127 (command not found)"
    ),
    "jobs that handle SIGTERM end by themselves": Ending(
        {"master": "exit 1", "worker.1": TRAPPED, "worker.2": TRAPPED, "ps.1": TRAPPED},
        "FAILED",
        "EXIT_CODE",
        "master",
        jobs={"worker.1": "KILLED"},
    ),
    "jobs that ignore SIGTERM are killed after stop_grace": Ending(
        {"master": "exit 1", "worker.1": DEAF, "ps.1": DEAF},
        "FAILED",
        "EXIT_CODE",
        "master",
        jobs={"worker.1": "KILLED", "ps.1": "KILLED"},
        keys={"stop_grace": 1},
    ),
    "max_duration": Ending(
        {}, "FAILED", "MAX_DURATION", None, "it reached max_duration of 2 s", keys={"max_duration": 2}
    ),
}


OUT_OF_MEMORY = Ending(
    {"worker.1": HOG},
    "FAILED",
    "OUT_OF_MEMORY",
    "worker.1",
    "out of memory",
    keys={"limits": {"mem": "64MiB"}},
)


@pytest.mark.parametrize("name", ENDINGS)
def test_ending(shared_rig: Rig, name: str) -> None:
    check(shared_rig, ENDINGS[name])


def test_out_of_memory_is_the_reason_where_limits_hold(docker_rig: Rig) -> None:
    check(docker_rig, OUT_OF_MEMORY)


def test_jobs_that_hang_are_ended_and_a_busy_one_is_not(shared_rig: Rig) -> None:
    # The shell computes itself: a new program may wait for a busy disk before it does anything.
    count = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    busy = f"end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do {count}; done"
    master = f"{busy}; touch $OUTPUT_DIR/computed; sleep 600"
    told = "it reached idle_timeout of 2 s; "
    ending = Ending({"master": master}, "FAILED", "IDLE", None, told, keys={"idle_timeout": 2})
    name = check(shared_rig, ending)
    computed = shared_rig.go_file(name).with_name("computed")
    assert computed.exists(), "the workers hang from the start, and the master computes"


def check(rig: Rig, ending: Ending) -> str:
    """Run the jobs to their end, compare everything that a user sees, and return the experiment's name."""
    name: str = rig.submit(gang(ending.script, **ending.keys))["id"]
    if ending.leader is not None:
        rig.wait(f"{ending.leader} has ended", lambda: state_of(rig, name, ending.leader) == "FINISHED")
        rig.go_file(name).touch()
    entries = rig.logs(name)
    found = rig.experiment(name)
    assert (found["state"], found["reason"], found["cause"]) == (ending.state, ending.reason, ending.cause)
    assert ending.message in found["message"]
    states = {job["name"]: job["state"] for job in found["jobs"]}
    assert {job: states[job] for job in ending.jobs} == ending.jobs
    assert found["closed"]
    assert rig.containers() == []
    assert rig.networks() == []
    (end,) = filter_entries(entries, "end")
    assert (end["state"], end["cause"]) == (ending.state, ending.cause)
    return name


def state_of(rig: Rig, experiment: str, name: str | None) -> str:
    """Return the state of one job."""
    (found,) = [job["state"] for job in rig.experiment(experiment)["jobs"] if job["name"] == name]
    return str(found)


def test_the_end_of_one_job_is_the_end(shared_rig: Rig) -> None:
    rig = shared_rig
    name = rig.submit(single(["echo one", "exit 5", "echo two"]))["id"]
    found = rig.wait_closed(name)
    assert found["state"] == "FAILED"
    assert found["exit_code"] == 5
    assert rig.lines(f"{name}.train") == [f"{name}.train one"], "a list of lines stops at the first failing one"


def test_kill(shared_rig: Rig) -> None:
    rig = shared_rig
    name = rig.submit(gang({"worker.1": DEAF}, stop_grace=1))["id"]
    rig.wait_state(name, "RUNNING")
    assert rig.post(f"/v1/experiments/{name}/kill").status_code == 200
    found = rig.wait_closed(name)
    assert found["state"] == "KILLED"
    assert {job["state"] for job in found["jobs"] if job["name"] != "build"} == {"KILLED"}
    assert rig.containers() == []


@pytest.mark.parametrize("around", ["", "; echo done"], ids=["one shell", "two shells"])
def test_a_program_has_its_time_to_save_whatever_shells_are_around_it(shared_rig: Rig, around: str) -> None:
    rig = shared_rig
    program = f"python3 -c {shlex.quote(SAVES)}"
    name = rig.submit(single(["echo begin", f"sh -c {shlex.quote(program + around)}"], stop_grace=DEADLINE))["id"]
    wait_for("the program runs", rig.go_file(name).with_name("ready").exists, DEADLINE)
    assert rig.post(f"/v1/experiments/{name}/kill").status_code == 200
    assert rig.wait_closed(name)["state"] == "KILLED"
    assert rig.go_file(name).with_name("saved").exists()
    assert rig.lines(f"{name}.train")[-2:] == [f"{name}.train saving", f"{name}.train saved"]


def test_kill_right_after_the_submit(shared_rig: Rig) -> None:
    rig = shared_rig
    name = rig.submit(gang({}))["id"]
    assert rig.post(f"/v1/experiments/{name}/kill").status_code == 200
    assert rig.wait_closed(name)["state"] == "KILLED"
    assert rig.containers() == []
    assert rig.networks() == []


def test_a_job_that_a_user_removes_fails_its_experiment(shared_rig: Rig) -> None:
    rig = shared_rig
    name = rig.submit(gang({}, stop_grace=1))["id"]
    rig.wait_state(name, "RUNNING")
    rig.remove("worker.2")
    found = rig.wait_closed(name)
    assert (found["state"], found["cause"]) == ("FAILED", "worker.2")
    assert found["reason"] in ("VANISHED", "SIGNAL"), "a removal kills first, which may be seen before it is gone"
    assert rig.containers() == []


def test_retry_runs_the_whole_gang_again_on_the_same_output(shared_rig: Rig) -> None:
    rig = shared_rig
    script = {
        "worker.1": '[ "$RISEML_ATTEMPT" = 2 ] && exit 0; exit 1',
        "master": 'echo $RISEML_ATTEMPT >> "$OUTPUT_DIR/a"; [ "$RISEML_ATTEMPT" = 2 ] || exec sleep 600',
    }
    name = rig.submit(gang(script, retry=1, finish_grace=1, stop_grace=1))["id"]
    found = rig.wait_closed(name)
    assert found["state"] == "FINISHED", found["message"]
    assert {job["attempt"] for job in found["jobs"] if job["name"] != "build"} == {2}
    assert "2" in rig.go_file(name).with_name("a").read_text()


def test_retry_of_a_role_starts_that_job_again_beside_the_others(shared_rig: Rig) -> None:
    rig = shared_rig
    script = {
        "worker.1": 'echo attempt $RISEML_ATTEMPT; [ "$RISEML_ATTEMPT" = 2 ]',
        "worker.2": "exit 0",
        "master": 'until [ -e "$OUTPUT_DIR/again" ]; do sleep 0.1; done',
    }
    script["worker.1"] += ' && touch "$OUTPUT_DIR/again"'
    name = rig.submit(gang(script, retry={"max": 1, "scope": "role"}, stop_grace=1))["id"]
    found = rig.wait_closed(name)
    assert found["state"] == "FINISHED"
    assert {job["name"]: job["attempt"] for job in found["jobs"] if job["name"] != "build"} == {
        "master": 1,
        "worker.1": 2,
        "worker.2": 1,
        "ps.1": 1,
    }
    assert rig.lines(f"{name}.worker.1") == [f"{name}.worker.1 attempt {n}" for n in (1, 2)]
