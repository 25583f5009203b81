"""The wrapper of a role as a process, without a Slurm around it; the test stands for the gang's supervisor."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from riseml.base.names import JobName
from riseml.executors.slurm.gang_folder import GangFolder, GangFolders, GangKey
from riseml.executors.slurm.gang_lines import SUPERVISOR, LineConnection
from tests.support.event_files import make_event
from tests.support.waiting import DEADLINE, wait_for

ROLE = JobName("train")
ADDRESSES = {"train": "n1:7"}
LEAVE_ORPHAN = "sh -c 'sleep 0.1 & echo $! >orphan'"
SAVE = """(
    trap 'touch saving; until [ -e save ]; do sleep 0.1; done; touch saved; exit' TERM
    touch ready
    while :; do sleep 0.1; done
) & :"""


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> GangFolder:
    """The folder of a gang of one role, which prints the address of its own, leaves an orphan, and waits for a file.

    With a parameter the role does that, too, and has a long time to end.
    """
    more = getattr(request, "param", ":")
    made = GangFolders(tmp_path).open_gang(GangKey(4, 1))
    made.make()
    script = f"echo at ADDRESS; {LEAVE_ORPHAN}; {more}\n while [ ! -e go-on ]; do sleep 0.1; done"
    order = {
        "token": "secret",
        "command": ["/bin/sh", "-c", script],
        "tokens": {ROLE: ["ADDRESS", "PORT"]},
        "environment": {"TOKEN": "canary", "OUTPUT_DIR": str(made.path / "output")},
        "events": {"jobs": 1, "patterns": [], "trackers": ["tensorboard"]},
        "workdir": str(made.path),
        "stop_grace": 1.0 if more == ":" else DEADLINE,
    }
    made.write_gang({"token": "secret"}, {ROLE: order})
    (made.path / "prepared").write_bytes(make_event(0, 2e9) + make_event(1, 2e9, loss=0.5))
    return made


@pytest.fixture
def supervisor(folder: GangFolder) -> Iterator[tuple[subprocess.Popen[bytes], LineConnection, dict[str, Any]]]:
    """The wrapper, the supervisor's end of its connection, and the first message."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        program = [sys.executable, str(folder.path / "role_wrapper.py"), str(folder.path), ROLE]
        with subprocess.Popen([*program, "127.0.0.1", str(listener.getsockname()[1])]) as process:
            listener.settimeout(DEADLINE)
            connection = LineConnection(listener.accept()[0], "secret", SUPERVISOR)
            connection.connection.settimeout(DEADLINE)
            connection.challenge()
            (hello,) = connection.receive() or [{}]
            yield process, connection, hello
            connection.connection.close()
            process.kill()


def receive_message(connection: LineConnection) -> dict[str, Any]:
    """Return the next message that is not a sign of life."""
    while True:
        found = [one for one in connection.receive() or ({"closed": True},) if one]
        if found:
            return found[0]


def test_the_token_is_not_sent(supervisor: tuple[subprocess.Popen[bytes], LineConnection, dict[str, Any]]) -> None:
    _, _, hello = supervisor
    assert "secret" not in json.dumps(hello)
    assert hello["role"] == ROLE


def test_addresses_of_another_program_do_not_become_a_command(
    folder: GangFolder,
    supervisor: tuple[subprocess.Popen[bytes], LineConnection, dict[str, Any]],
) -> None:
    process, connection, _ = supervisor
    connection.connection.sendall(
        json.dumps({"text": json.dumps({"go": ADDRESSES}), "proof": "guess"}).encode() + b"\n"
    )
    assert process.wait(DEADLINE) == 1
    assert folder.log_path(ROLE).read_bytes() == b""


def test_a_door_that_cannot_be_started_ends_no_role(
    folder: GangFolder, supervisor: tuple[subprocess.Popen[bytes], LineConnection, dict[str, Any]]
) -> None:
    process, connection, hello = supervisor
    (folder.path / f"{ROLE}.connection").mkdir()  # the output of the door cannot be opened, as on a full disk
    connection.send({"go": ADDRESSES})
    assert receive_message(connection) == {"started": True}
    wait_for("the output of the role", lambda: b"at n1\n" in folder.log_path(ROLE).read_bytes(), DEADLINE)
    with socket.create_connection(("127.0.0.1", hello["door"])):
        connection.send({})
        (folder.path / "go-on").touch()
        assert receive_message(connection) == {"code": 0, "outside": False}
    assert process.wait(DEADLINE) == 0


def test_the_values_of_variables_are_gone_from_the_file_once_the_command_has_them(
    folder: GangFolder, supervisor: tuple[subprocess.Popen[bytes], LineConnection, dict[str, Any]]
) -> None:
    process, connection, _ = supervisor
    file = folder.path / "roles" / f"{ROLE}.json"
    assert "canary" in file.read_text()
    connection.send({"go": ADDRESSES})
    assert receive_message(connection) == {"started": True}
    assert "canary" not in file.read_text()
    assert (json.loads(file.read_text())["token"], file.stat().st_mode & 0o777) == ("secret", 0o600)
    (folder.path / "go-on").touch()
    assert receive_message(connection) == {"code": 0, "outside": False}
    assert process.wait(DEADLINE) == 0


def test_an_orphaned_process_is_not_a_zombie_after_its_end(
    folder: GangFolder, supervisor: tuple[subprocess.Popen[bytes], LineConnection, dict[str, Any]]
) -> None:
    process, connection, _ = supervisor
    connection.send({"go": ADDRESSES})
    assert receive_message(connection) == {"started": True}
    note = folder.path / "orphan"
    orphan = wait_for("the orphan", lambda: note.read_text().strip() if note.exists() else "", DEADLINE)
    wait_for("the end of the orphan", lambda: not Path("/proc", orphan).exists(), DEADLINE)
    (folder.path / "go-on").touch()
    assert receive_message(connection) == {"code": 0, "outside": False}
    assert process.wait(DEADLINE) == 0


@pytest.mark.parametrize("folder", [SAVE], indirect=True, ids=["a program that saves"])
def test_after_sigterm_the_role_ends_with_the_last_process(
    folder: GangFolder, supervisor: tuple[subprocess.Popen[bytes], LineConnection, dict[str, Any]]
) -> None:
    """The shell of the script ends at once; the program that it has started saves a checkpoint."""
    process, connection, _ = supervisor
    connection.send({"go": ADDRESSES})
    assert receive_message(connection) == {"started": True}
    wait_for("the program", (folder.path / "ready").exists, DEADLINE)
    connection.send({"signal": "TERM"})
    wait_for("the program has SIGTERM", (folder.path / "saving").exists, DEADLINE)
    (folder.path / "save").touch()
    assert receive_message(connection) == {"code": 128 + 15, "outside": False}
    assert process.wait(DEADLINE) == 128 + 15
    assert (folder.path / "saved").exists()


@pytest.mark.parametrize("folder", ["sleep 603 >/dev/null 2>&1 &"], indirect=True, ids=["a program in the background"])
def test_what_a_role_leaves_in_the_background_is_named(
    folder: GangFolder, supervisor: tuple[subprocess.Popen[bytes], LineConnection, dict[str, Any]]
) -> None:
    process, connection, _ = supervisor
    connection.send({"go": ADDRESSES})
    assert receive_message(connection) == {"started": True}
    (folder.path / "go-on").touch()
    assert receive_message(connection) == {"code": 0, "outside": False}
    assert process.wait(DEADLINE) == 0
    log = folder.log_path(ROLE).read_bytes()
    assert b"so ends what it left in the background: sleep 603 (a last line `wait` lets that end first)]\n" in log


@pytest.mark.parametrize("folder", ["mkdir output; cp prepared output/tfevents"], indirect=True, ids=["event files"])
@pytest.mark.parametrize("how", ["at its end", "after SIGTERM", "while it runs"])
def test_event_files_of_a_role_are_read_to_their_end(
    folder: GangFolder, supervisor: tuple[subprocess.Popen[bytes], LineConnection, dict[str, Any]], how: str
) -> None:
    process, connection, _ = supervisor
    connection.send({"go": ADDRESSES})
    assert receive_message(connection) == {"started": True}
    log = folder.log_path(ROLE)
    reports = [b'"step": 1, "loss": 0.5}\n']
    if how == "while it runs":
        wait_for("a report", lambda: log.read_bytes().endswith(reports[0]), DEADLINE)
        with open(folder.path / "output" / "tfevents", "ab") as file:
            file.write(make_event(2, 2e9, loss=0.25))
        reports.append(b'"step": 2, "loss": 0.25}\n')
    if how == "after SIGTERM":
        wait_for("the file", (folder.path / "output" / "tfevents").exists, DEADLINE)
        connection.send({"signal": "TERM"})
    (folder.path / "go-on").touch()
    assert receive_message(connection)["outside"] is False
    process.wait(DEADLINE)
    assert [log.read_bytes().count(report) for report in reports] == [1] * len(reports)


LOSE = """
import os, socket, subprocess, sys
from riseml.executors.slurm.gang_lines import LineConnection
from riseml.executors.slurm.role_wrapper import RoleWrapper

class Hung(LineConnection):
    beats = 0
    def beat(self):
        self.beats += 1

wrapper = RoleWrapper(sys.argv[1], sys.argv[2])
ours, theirs = socket.socketpair()
wrapper.lines = Hung(ours, "secret", "role")
kill, hung, refused = os.kill, [subprocess.Popen(["sleep", "600"], stderr=-3) for _ in range(2)], []
def refuse(pid, number):
    if pid == hung[0].pid or (pid == hung[1].pid and len(refused) < 3):
        refused.append(pid)
    else:
        kill(pid, number)
"""
"""A wrapper whose two processes do not end at SIGKILL: the first one never, and the second one after a while."""

KILL_REST = f"""{LOSE}
os.kill = refuse
wrapper.use.find_reader = lambda: hung[0].pid
wrapper._kill_rest()
assert hung[0].poll() is None and wrapper.lines.beats > 0, wrapper.lines.beats
kill(hung[0].pid, 9)
"""

LOSE_AT_START = f"""{LOSE}
theirs.close()
assert not wrapper._start_command({ADDRESSES})
wrapper._tell_supervisor({{"started": True}})
assert wrapper.kill_at and wrapper.error, "it is to end"
for one in (wrapper.child, *hung):
    one.kill()
"""


@pytest.mark.parametrize("program", [KILL_REST, LOSE_AT_START], ids=["hung nvidia-smi", "no supervisor at the start"])
def test_a_wrapper_holds_no_end_back_and_lets_no_command_run_on_alone(folder: GangFolder, program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder.path), ROLE], timeout=DEADLINE, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
