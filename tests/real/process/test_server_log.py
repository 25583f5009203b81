"""What a real server decided and did, as `riseml server logs` prints it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tests.support.command import run_riseml
from tests.support.rig import Rig, single
from tests.support.waiting import DEADLINE

SECRET = "canary-8f3a1c-secret"
SCRIPT = 'test -n "$TOKEN"; exit 0'


def print_log(rig: Rig, *options: str) -> list[str]:
    """The lines that the command prints."""
    done = run_riseml(["server", "logs", *options], rig.home, rig.environ())
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def find_line(log: str, pattern: str, start: int) -> int:
    """The position behind a line of the log, at or after `start`."""
    found = re.compile(rf"^\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ {pattern}$", re.MULTILINE).search(log, start)
    assert found is not None, f"{pattern} is missing, or too early, in\n{log}"
    return found.end()


def test_the_log_tells_an_experiment_from_its_request_to_its_end(process_rig: Rig) -> None:
    rig = process_rig
    rig.submit(single(SCRIPT, env=["TOKEN"]), environment={"TOKEN": SECRET})
    rig.wait_closed("1")
    rig.wait("the last line is written", lambda: "1 closed" in "\n".join(print_log(rig)) or None)
    log = "\n".join(print_log(rig))
    told = [
        r"INFO 1 placed: train on [\w.-]+ \(first in the queue\)",
        r"INFO 1\.train a1 FINISHED on [\w.-]+: exit code 0",
        "INFO 1 FINISHED: train ended with exit code 0",
        "INFO 1 closed: nothing of it is left on any host",
    ]
    at = 0
    for line in told:
        at = find_line(log, line, at)
    placed = find_line(log, told[0], 0)
    find_line(log, r"INFO 1\.train a1 started on [\w.-]+ in \d+\.\d\d s", placed)
    find_line(log, "INFO 1 accepted: project toaster, jobs train", 0)
    assert SECRET not in log
    assert print_log(rig, "--tail", "1") == log.splitlines()[-1:]


def test_an_idle_server_writes_nothing(process_rig: Rig) -> None:
    log = process_rig.home / "server.log"
    process_rig.wait("the server has seen its machine", lambda: " answers: " in log.read_text())
    before = log.read_text()
    for _ in range(3):
        process_rig.get("/v1/system")  # waits for a whole pass
    new = log.read_text().removeprefix(before).splitlines()
    assert [line for line in new if " answers again after " not in line] == [], (
        "a busy machine may be silent for seconds"
    )


def test_a_server_whose_home_is_removed_ends(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "home", None)
    rig.start()
    assert rig.process is not None, "it was started"
    shutil.rmtree(rig.home)
    assert rig.process.wait(DEADLINE) == 0


def test_json_lines_hold_the_facts_and_no_server_has_to_run(tmp_path: Path) -> None:
    with Rig(tmp_path / "home", None, RISEML_LOG_FORMAT="json") as rig:
        rig.submit(single("exit 3"))
        rig.wait_closed("1")
    lines = [json.loads(line) for line in print_log(rig)]
    (started,) = [line for line in lines if " started on " in line["message"]]
    assert (started["experiment"], started["job"], started["attempt"]) == ("1", "train", 1)
    assert started["seconds"] >= 0
    (ended,) = [line for line in lines if line["message"].startswith("1 FAILED: ")]
    assert (ended["experiment"], ended["reason"]) == ("1", "EXIT_CODE")
    assert [line["experiment"] for line in map(json.loads, print_log(rig, "--json")) if line["state"] == "FAILED"]


def test_a_server_answers_whose_home_has_a_path_that_is_too_long_for_a_socket(tmp_path: Path) -> None:
    with Rig(tmp_path / ("long-" * 30), None) as rig:
        try:
            status = json.loads(run_riseml(["server", "status", "--json"], tmp_path, rig.environ()).stdout)
            assert (status["id"], (rig.home / "server.sock").exists()) == (rig.server_id(), False)
            assert str(rig.socket) in (rig.home / "server.log").read_text()
        finally:
            rig.stop()
            rig.socket.parent.rmdir()
