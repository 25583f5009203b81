"""What users do with a running gang on a cluster: commands, a shell, ports, figures; and its record."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path

import psutil

from tests.real.slurm.test_gangs import three
from tests.real.streams.conftest import Hands
from tests.support.command import run_riseml
from tests.support.rig import GO, Rig, single
from tests.support.slurm_cluster import SlurmCluster
from tests.support.waiting import DEADLINE

SERVE = """python3 -c '
import os, socket
door = socket.create_server(("127.0.0.1", 8799))
print("listens", flush=True)
while True:
    one = door.accept()[0]
    one.sendall(one.makefile().readline().upper().encode() + os.environ["RISEML_JOB"].encode())
    one.close()
' & """
BUSY = 'while [ ! -e "$OUTPUT_DIR/go" ]; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done'
SLOW = "trap '' HUP; (setsid sleep 611 &) ; sleep 612 & echo begun; cat >/dev/null; sleep 613"


def test_commands_a_shell_ports_and_figures_of_a_gang_and_its_record(slurm_rig: Rig) -> None:
    slurm_rig.submit(three({"master": GO, "worker.1": BUSY, "ps.1": f"{SERVE} exec sleep 600"}))
    slurm_rig.wait_state("1", "RUNNING")
    hands = Hands(slurm_rig)
    _run_commands(hands)
    _use_shell(hands)
    _leave_nothing(hands)
    slurm_rig.wait("the ps listens", lambda: "1.ps.1 listens" in slurm_rig.lines("1", follow=False))
    _use_port(hands)
    _see_stacks(hands)
    _see_figures(hands)
    running = hands.start("exec", "1.worker.1", "--", "sh", "-c", "echo begun; sleep 600")
    assert running.stdout is not None
    assert running.stdout.readline() == b"begun\n"
    slurm_rig.go_file("1").touch()
    running.communicate()
    assert running.returncode in (4, 137)
    assert slurm_rig.wait_closed("1")["state"] == "FINISHED"
    code, _, err = hands.call("exec", "1.master", "true")
    assert (code, "1.master has ended (FINISHED)" in err) == (4, True)
    capsule = slurm_rig.get("/v1/experiments/1/capsule")["capsule"]
    assert [host["name"] for host in capsule["hosts"]] == ["n1", "n2", "n3"]
    assert all(re.match(r"slurm\S* [\d.]+, Linux \d", host["runs"]) for host in capsule["hosts"])


def _run_commands(hands: Hands) -> None:
    script = 'cat; echo "$RISEML_JOB $(hostname)"; pwd; echo bad >&2; exit 7'
    code, out, err = hands.call("exec", "1.worker.1", "--", "sh", "-c", script, given=b"given ")
    assert (code, err) == (7, "bad\n")
    assert re.match(rb"given worker\.1 n\d\n" + str(hands.rig.home.parent).encode() + rb".*/code/worker\.1\n", out), out
    content = bytes(range(256)) * 4096  # 1 MiB: several windows, and every byte
    assert hands.call("exec", "1.master", "cat", given=content) == (0, content, "")
    code, _, err = hands.call("exec", "1.master", "--", "no-such-program")
    assert (code, "no-such-program" in err) == (127, True)


def _use_shell(hands: Hands) -> None:
    with hands.open("shell", "1.ps.1") as shell:
        shell.wait_for("A shell in 1.ps.1")
        shell.type("stty size; echo job=$RISEML_JOB term=$TERM\n")
        shell.wait_for("33 101")
        shell.wait_for("job=ps.1 term=xterm")
        shell.resize(44, 132)
        shell.type("until [ \"$(stty size)\" = '44 132' ]; do sleep 0.05; done; echo resi''zed\n")
        shell.wait_for("resized")
        shell.type("exit 5\n")
        assert shell.finish() == 5


def _leave_nothing(hands: Hands) -> None:
    """Nothing is left of a command whose user is gone, also of what tried to get away."""
    killed = hands.start("exec", "1.master", "--", "sh", "-c", SLOW)
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"begun\n"
    killed.kill()
    killed.communicate()
    hands.rig.wait("nothing of it is left", lambda: not _list_sleeps() & {"611", "612", "613"})


def _list_sleeps() -> set[str]:
    """Return the last words of all processes, such as the seconds of a sleep."""
    return {process.info["cmdline"][-1] for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"]}


def _use_port(hands: Hands) -> None:
    forward = hands.start("forward", "1.ps.1", "0:8799", "--json")
    assert forward.stdout is not None
    try:
        shown = json.loads(forward.stdout.readline())["forwards"][0]["address"]
        host, _, port = shown.removeprefix("http://").rpartition(":")
        for _ in range(2):
            with socket.create_connection((host, int(port))) as door:
                door.sendall(b"hello\n")
                assert door.makefile().read() == "HELLO\nps.1"
    finally:
        forward.kill()
        forward.communicate()


def _see_stacks(hands: Hands) -> None:
    """Each role is read on its own node, and the program of the ps goes on."""
    code, out, err = hands.call("stacks", "1", "--json")
    assert (code, err) == (0, "")
    jobs = {job["id"]: job for job in json.loads(out)["jobs"]}
    assert {job: row["trouble"] for job, row in jobs.items()} == {"1.master": "", "1.worker.1": "", "1.ps.1": ""}
    (server,) = (process for process in jobs["1.ps.1"]["processes"] if process["threads"])
    assert server["threads"][0]["frames"][0]["function"] == "socket.accept"
    assert not any("role_" in process["command"] for row in jobs.values() for process in row["processes"])
    _use_port(hands)


def _see_figures(hands: Hands) -> None:
    def look() -> bool:
        code, out, err = hands.call("monitor", "1", "--once", "--json")
        assert code == 0, err
        found = {one["id"]: one for one in json.loads(out)["samples"]}
        busy, idle = found["1.worker.1"], found["1.ps.1"]
        placed = {busy["node"], idle["node"]} <= {"n1", "n2", "n3"}
        return bool(placed and busy["cpu"] and busy["cpu"] > 20 and idle["mem_used"] and idle["mem_total"] == 200 << 20)

    hands.rig.wait("the busy worker shows", look)


def test_limits_and_a_retry_end_experiments(slurm_rig: Rig) -> None:
    one = {"resources": {"cpus": 1, "mem": "100MiB"}, "stop_grace": 1}
    slurm_rig.submit(single('[ "$RISEML_ATTEMPT" = 2 ] || exit 7', retry={"max": 1, "on": ["exit-codes"]}, **one))
    slurm_rig.submit(single("sleep 600", max_duration="2s", **one))
    slurm_rig.submit(single("sleep 600", idle_timeout="4s", **one))
    slurm_rig.submit(single(BUSY, idle_timeout="4s", **one))
    ends = [slurm_rig.wait_closed(name) for name in ("1", "2", "3")]
    found = [(end["state"], end["reason"], end["jobs"][-1]["attempt"]) for end in ends]
    assert found[0] == ("FINISHED", "COMPLETED", 2)
    assert found[1:] == [("FAILED", "MAX_DURATION", 1), ("FAILED", "IDLE", 1)]
    assert slurm_rig.experiment("4")["state"] == "RUNNING", "it has computed all the time"
    slurm_rig.go_file("4").touch()
    assert slurm_rig.wait_closed("4")["state"] == "FINISHED"


def test_a_user_on_a_login_node_needs_no_pool_file(tmp_path: Path, cluster: SlurmCluster) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "riseml.yml").write_text(single('echo "on $(hostname)"'))
    environment = {**os.environ, **cluster.environment, "RISEML_HOME": str(tmp_path / "home")}

    def call(*words: str) -> str:
        done = run_riseml(words, project, environment, 3 * DEADLINE)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    try:
        assert re.search(r"train \| on n[123]$", call("train", "--executor", "slurm"), re.MULTILINE)
        assert json.loads(call("system", "info", "--json"))["server"]["executor"] == "slurm"
        call("export", "1", str(tmp_path / "exported"), "--slurm")
        assert "#SBATCH" in (tmp_path / "exported" / "job.sbatch").read_text()
    finally:
        call("server", "stop")
