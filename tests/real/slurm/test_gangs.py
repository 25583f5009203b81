"""Gangs on a real Slurm cluster of three nodes."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

from tests.real.metrics.test_reports import read_metrics
from tests.support.rig import BASE, GO, Rig
from tests.support.slurm_cluster import SlurmCluster
from tests.support.waiting import DEADLINE

LINES = 200
AWAY = 5.0  # seconds without a server
COUNT = f"i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); done"
LISTEN = """python3 -c '
import os, socket
door = socket.create_server(("", int(os.environ["RISEML_PORT"])))
door.accept()[0].sendall(b"hello from the worker")
'"""
CALL = """python3 -c '
import json, os, socket, time
host, port = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"][0].split(":")
while True:
    try:
        print(socket.create_connection((host, int(port))).recv(99).decode(), flush=True)
        break
    except ConnectionRefusedError:
        os.sched_yield()
'"""

EVENT_WRITER = (Path(__file__).parents[2] / "support" / "event_files.py").read_text()
WRITE = """
import os
folder = os.environ["OUTPUT_DIR"] + "/" + os.environ["RISEML_JOB"]
os.makedirs(folder)
with open("%s/events.out.tfevents.%d.%s.7" % (folder, time.time(), os.uname().nodename), "wb") as file:
    for step in range(50):
        file.write(make_event(step, loss=1 / (step + 1)))
"""


def three(script: dict[str, str], **keys: Any) -> str:
    """Return a riseml.yml of a master, a worker and a ps, each of which needs most of a node."""
    cases = "\n".join(f"{job}) {text} ;;" for job, text in script.items())
    train: dict[str, Any] = {
        "framework": "tensorflow",
        "image": BASE,
        "tensorflow": {"version": "2.21.0", "distributed": {"worker": 2, "ps": 1}},
        "resources": {"cpus": 3, "mem": "200MiB"},
        "finish_grace": 0,
        "run": f'case "$RISEML_JOB" in\n{cases}\n*) exec sleep 600 ;;\nesac\n',
        **keys,
    }
    return json.dumps({"project": "toaster", "train": train})


def test_a_gang_over_three_nodes_meets_and_finishes(slurm_rig: Rig) -> None:
    """Each role also writes event files of TensorBoard, which all three readers see, and one reads."""
    where = "hostname; python3 write.py; "
    script = {  # the master ends the others: it waits until the ps has said where it is
        "master": f"{where}{CALL}; {GO}; {COUNT}",
        "worker.1": where + LISTEN,
        "ps.1": f"{where}touch $OUTPUT_DIR/go; sleep 600",
    }
    slurm_rig.submit(three(script), {"write.py": EVENT_WRITER + WRITE})
    found = slurm_rig.wait_closed("1")
    assert found["state"] == "FINISHED", slurm_rig.last_words()
    counts = {name: metric["count"] for name, metric in read_metrics(slurm_rig, "1").items()}
    assert counts == {"master/loss": 50, "worker.1/loss": 50, "ps.1/loss": 50}
    lines = slurm_rig.lines("1")
    assert {line.split()[1] for line in lines if re.search(r" n\d$", line)} == {"n1", "n2", "n3"}
    assert "1.master hello from the worker" in lines
    assert [line for line in lines if " line " in line] == [f"1.master line {number}" for number in range(LINES)]
    ends = {job["id"]: (job["state"], job["reason"]) for job in found["jobs"]}
    assert ends["1.master"] == ("FINISHED", "COMPLETED")
    assert ends["1.ps.1"] == ("FINISHED", "NO_LONGER_NEEDED")
    folder = slurm_rig.home.with_name("shared") / "gangs" / slurm_rig.server_id()[:12]
    assert not list(folder.iterdir()), "nothing is left in the shared folder"


def test_a_gang_waits_in_slurm_then_a_failing_role_and_a_kill_end_gangs(slurm_rig: Rig, cluster: SlurmCluster) -> None:
    slurm_rig.submit(three({"worker.1": f"{GO}; exit 7"}))
    slurm_rig.wait_state("1", "RUNNING")
    slurm_rig.submit(three({}))

    def waits() -> dict[str, Any] | None:
        found = slurm_rig.experiment("2")
        return found if found["reason"] == "IN_QUEUE" and "not free yet" in found["message"] else None

    slurm_rig.wait("experiment 2 waits for nodes", waits)
    slurm_rig.go_file("1").touch()
    found = slurm_rig.wait_closed("1")
    assert (found["state"], found["reason"]) == ("FAILED", "EXIT_CODE")
    ends = {job["id"]: (job["state"], job["reason"]) for job in found["jobs"]}
    assert ends["1.worker.1"] == ("FAILED", "EXIT_CODE")
    assert ends["1.master"] == ends["1.ps.1"] == ("KILLED", "CASCADE")
    slurm_rig.wait_state("2", "RUNNING")
    jobs = slurm_rig.get("/v1/experiments/2/explain")["jobs"]
    assert {job["address"] for job in jobs} == cluster.list_addresses()
    assert {job["node"] for job in jobs} == {"n1", "n2", "n3"}
    slurm_rig.post("/v1/experiments/2/kill")
    assert slurm_rig.wait_closed("2")["state"] == "KILLED"
    slurm_rig.wait("Slurm runs nothing of it", lambda: not cluster.list_jobs(slurm_rig.server_id()))
    shared = str(slurm_rig.home.with_name("shared"))
    slurm_rig.wait("no process of it is left", lambda: not cluster.find_processes(shared))


def test_a_server_that_dies_after_the_submission_adopts_the_gang(slurm_rig: Rig, cluster: SlurmCluster) -> None:
    slurm_rig.stop()
    slurm_rig.environment["RISEML_FAULT"] = "P4"
    slurm_rig.start()
    slurm_rig.submit(three({"master": f"echo begun >>$OUTPUT_DIR/begun; {COUNT}; {GO}; {COUNT}"}))
    assert slurm_rig.process is not None
    slurm_rig.process.wait(DEADLINE)
    del slurm_rig.environment["RISEML_FAULT"]
    slurm_rig.start()
    slurm_rig.wait_state("1", "RUNNING")
    (job,) = cluster.list_jobs(slurm_rig.server_id())
    slurm_rig.kill()
    slurm_rig.start()
    slurm_rig.go_file("1").touch()
    assert slurm_rig.wait_closed("1")["state"] == "FINISHED"
    assert cluster.list_jobs(slurm_rig.server_id(), "all") == [job]
    lines = [line for line in slurm_rig.lines("1") if " line " in line]
    assert lines == [f"1.master line {number}" for number in range(LINES)] * 2


def test_a_gang_that_ends_without_a_server_has_its_own_time(slurm_rig: Rig) -> None:
    uptime = "cat /proc/uptime >$OUTPUT_DIR/{}"
    slurm_rig.submit(three({"master": f"{uptime.format('began')}; {GO}; {uptime.format('ended')}"}))
    slurm_rig.wait_state("1", "RUNNING")
    go = slurm_rig.go_file("1")
    slurm_rig.wait("the master runs", lambda: (go.parent / "began").exists() or None)
    slurm_rig.kill()
    go.touch()
    threading.Event().wait(AWAY)
    slurm_rig.start()
    assert slurm_rig.wait_closed("1")["state"] == "FINISHED"
    began, ended = (float((go.parent / name).read_text().split()[0]) for name in ("began", "ended"))
    (row,) = slurm_rig.get("/v1/results", of="1")["experiments"]
    assert ended - began - 1 <= row["seconds"] <= ended - began + 2, "its roles start one after the other"


def test_a_gang_whose_loss_is_not_a_number_ends_on_all_nodes(slurm_rig: Rig, cluster: SlurmCluster) -> None:
    lost = "import riseml\nfor step in range(3): riseml.report(step=step, loss=float('nan'))\n"
    script = {"master": "sleep 600", "worker.1": "python3 lost.py; sleep 600"}
    slurm_rig.submit(three(script, on={"nan": "stop"}), {"lost.py": lost})
    ended = slurm_rig.wait_closed("1")
    assert (ended["state"], ended["reason"], ended["message"]) == ("FINISHED", "NOT_FINITE", "loss is nan at step 2")
    assert {job["state"] for job in ended["jobs"]} == {"FINISHED"}
    slurm_rig.wait("Slurm runs nothing of it", lambda: not cluster.list_jobs(slurm_rig.server_id()))


def test_a_submission_whose_answer_is_lost_is_found_again(slurm_rig: Rig, cluster: SlurmCluster) -> None:
    output = slurm_rig.submit(three({"master": "echo begun >>$OUTPUT_DIR/begun", "worker.1": "true"}))["output"]
    cluster.freeze()
    try:
        slurm_rig.wait("the submission fails", lambda: "does not answer" in (slurm_rig.home / "server.log").read_text())
    finally:
        cluster.thaw()
    found = slurm_rig.wait_closed("1")
    assert found["state"] == "FINISHED", slurm_rig.last_words()
    with open(f"{output}/begun") as file:
        assert file.read() == "begun\n"


def test_the_lines_and_install_steps_of_a_gang_are_bash(slurm_rig: Rig) -> None:
    """Each role ends with its own exit code: that of the command in a pipe that failed."""
    script = {
        "master": "[[ $(cat made) == 12 ]] && words=(a {1..3}); echo ${#words[@]}; sh -c 'exit 7' | tee log",
        "worker.1": "sleep 600",
        "ps.1": "sleep 600",
    }
    slurm_rig.submit(three(script, install=["printf %s {1..2} &> made"]))
    assert slurm_rig.wait_closed("1")["exit_code"] == 7, slurm_rig.last_words()
    assert "1.master 4" in slurm_rig.lines("1")
    assert {job["shell"] for job in slurm_rig.experiment("1")["jobs"] if job["name"] != "build"} == {"bash"}
