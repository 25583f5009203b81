"""The server is killed, the engine stalls, a client reads the log again: the same experiment goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from tests.support.hosts import Engine
from tests.support.rig import GO, Rig, gang, single
from tests.support.waiting import DEADLINE

COUNT = 400
COUNTER = f"i=0; while [ $i -lt {COUNT} ]; do echo line $i; i=$((i+1)); sleep 0.01; done"


def numbers(lines: list[str], job: str) -> list[int]:
    """Return the numbers that a counting job printed, in order."""
    return [int(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{job} line ")]


def test_kill_nine_in_the_middle_loses_and_repeats_nothing(rig: Rig) -> None:
    rig.submit(gang({"master": f"{COUNTER}; {GO}", "worker.1": COUNTER, "worker.2": "exit 0"}, finish_grace=DEADLINE))
    rig.wait_state("1", "RUNNING")
    for _ in range(3):
        rig.wait("some lines are there", lambda: len(rig.lines("1.master", follow=False)) > 20)
        rig.kill()
        rig.start()
    rig.go_file("1").touch()
    found = rig.wait_closed("1")
    assert found["state"] == "FINISHED"
    lines = rig.lines("1")
    assert numbers(lines, "1.master") == list(range(COUNT))
    assert numbers(lines, "1.worker.1") == list(range(COUNT))
    assert rig.containers() == []


def test_a_server_finds_out_what_ended_while_no_server_ran(rig: Rig) -> None:
    rig.submit(gang({"master": f"echo here; {GO}; echo there; exit 6"}, stop_grace=1))
    rig.wait_state("1", "RUNNING")
    rig.wait("the store has the first line", lambda: rig.lines("1.master", follow=False))
    go = rig.go_file("1")
    rig.kill()
    go.touch()
    rig.wait_end("master")
    rig.start()
    found = rig.wait_closed("1")
    assert (found["state"], found["cause"], found["exit_code"]) == ("FAILED", "master", 6)
    assert rig.lines("1.master") == ["1.master here", "1.master there"]


def test_a_kill_request_survives_the_server(rig: Rig) -> None:
    rig.submit(gang({}, stop_grace=1))
    rig.wait_state("1", "RUNNING")
    rig.post("/v1/experiments/1/kill")
    rig.kill()
    rig.start()
    assert rig.wait_closed("1")["state"] == "KILLED"


def test_training_goes_on_when_the_server_stops(rig: Rig) -> None:
    rig.submit(gang({}))
    rig.wait_state("1", "RUNNING")
    assert rig.post("/v1/server/stop").status_code == 200
    assert rig.process is not None
    assert rig.process.wait(timeout=DEADLINE) == 0
    assert len(rig.containers(running=True)) == 4
    rig.start()
    rig.post("/v1/experiments/1/kill")
    rig.wait_closed("1")


def test_a_log_is_read_on_from_its_cursor(shared_rig: Rig) -> None:
    name = shared_rig.submit(single(COUNTER))["id"]
    entries = shared_rig.logs(name)
    middle = len(entries) // 2
    rest = shared_rig.logs(name, cursor=entries[middle]["cursor"])
    assert rest == entries[middle + 1 :]


def test_two_servers_on_one_home(shared_rig: Rig) -> None:
    rig = shared_rig
    pid = rig.get("/v1/server")["pid"]
    second = subprocess.run([sys.executable, "-m", "riseml.server"], env=rig.environ(), timeout=DEADLINE, check=False)
    assert second.returncode == 4, "it is refused"
    assert rig.get("/v1/server")["pid"] == pid


def test_an_old_key_is_the_same_experiment(shared_rig: Rig) -> None:
    rig = shared_rig
    body = rig.submission(single("exit 0"), key="abc")
    first, second = rig.post("/v1/experiments", body), rig.post("/v1/experiments", body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]
    rig.wait_closed(first.json()["id"])


def test_long_lines_and_odd_bytes(shared_rig: Rig) -> None:
    script = "import sys\nprint('x' * 100_000, flush=True)\nsys.stdout.buffer.write(bytes(range(256)) + b'\\nend\\n')\n"
    name = shared_rig.submit(single("python3 odd.py"), {"odd.py": script})["id"]
    lines = shared_rig.lines(f"{name}.train")
    assert lines[0] == f"{name}.train " + "x" * 100_000
    assert lines[-1] == f"{name}.train end"


def test_output_belongs_to_its_user_and_holds_the_configuration(shared_rig: Rig) -> None:
    rig = shared_rig
    submitted = rig.submit(
        single(
            'echo 42 > "$OUTPUT_DIR/result"; touch "$DATA_DIR/x" 2>/dev/null || echo read-only',
            env={"TOKEN": "s3cret-value"},
            parameters={"lr": 0.0001, "decay": "1e-7", "n": 3, "name": "adam"},
        )
    )
    name = submitted["id"]
    found = rig.wait_closed(name)
    result = os.path.join(found["output"], "result")
    assert os.stat(result).st_uid == os.getuid()
    assert not rig.host.contained or rig.lines(f"{name}.train")[-1] == f"{name}.train read-only"
    record = Path(found["output"], "riseml-configuration.yml").read_text()
    assert "revision" in record
    assert yaml.safe_load(record)["params"] == {"lr": 0.0001, "decay": 1e-7, "n": 3, "name": "adam"}
    assert "s3cret-value" not in record


def test_containers_are_hardened(shared_docker_rig: Rig) -> None:
    rig, engine = shared_docker_rig, shared_docker_rig.host
    assert isinstance(engine, Engine), "a rig on an engine"
    name = rig.submit(gang({}))["id"]
    rig.wait_state(name, "RUNNING")
    rows = engine.rows(rig.server_id())
    assert len(rows) >= 4
    for row in rows:
        found = engine.api.inspect_container(row["Id"])
        config = found["HostConfig"]
        assert config["CapDrop"] == ["ALL"]
        assert config["SecurityOpt"] == ["no-new-privileges"]
        assert config["Init"] is True
        assert config["Privileged"] is False
        assert config["PidsLimit"] == 4096
        assert config["RestartPolicy"]["Name"] in ("", "no")
        assert all(mount["Destination"] in ("/output", "/data") for mount in found["Mounts"])
        assert json.dumps(found).count("docker.sock") == 0
    rig.post(f"/v1/experiments/{name}/kill")
    rig.wait_closed(name)
