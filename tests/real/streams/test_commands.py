"""`riseml exec` and `riseml shell` on containers and on processes."""

from __future__ import annotations

import os

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import unix_connect
from websockets.typing import Origin

from riseml.base.stream_messages import StreamFailure, decode_message
from tests.real.streams.conftest import Hands, use_two_shells
from tests.support.rig import GO, gang, single
from tests.support.waiting import DEADLINE

SLOW = "trap '' HUP; (setsid sleep 611 &) ; sleep 612 & echo begun; cat >/dev/null; sleep 613"
"""Shell of a command that ignores SIGHUP, and whose children try to get away."""


@pytest.mark.every_engine
def test_a_command_has_the_surroundings_of_the_job_and_its_exit_code_comes_back(hands: Hands) -> None:
    script = 'cat; echo "$RISEML_JOB $EXPERIMENT_ID"; pwd; echo bad >&2; exit 7'
    code, out, err = hands.call("exec", f"{hands.name}.train", "--", "sh", "-c", script, given=b"given ")
    folder = b"/code" if hands.rig.host.contained else str(hands.rig.home).encode()
    assert (code, err) == (7, "bad\n")
    assert out.startswith(f"given train {hands.name}\n".encode() + folder), out
    content = bytes(range(256)) * 8192  # 2 MiB: several windows, and every byte
    assert hands.call("exec", hands.name, "cat", given=content) == (0, content, "")
    code, _, err = hands.call("exec", hands.name, "--", "no-such-program")
    assert (code, "no-such-program" in err) == (127, True)
    hands.wait_until_nothing_is_left()
    assert hands.rig.experiment(hands.name)["state"] == "RUNNING"


@pytest.mark.every_engine
def test_a_shell_is_a_real_terminal(hands: Hands) -> None:
    use_two_shells(hands)
    hands.wait_until_nothing_is_left()
    assert hands.rig.experiment(hands.name)["state"] == "RUNNING"


@pytest.mark.every_engine
def test_nothing_is_left_of_a_command_whose_user_is_gone(hands: Hands) -> None:
    killed = hands.start("exec", hands.name, "--", "sh", "-c", SLOW)
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"begun\n"
    left = hands.list_commands()
    assert any("sleep 611" in line for line in left), left
    killed.kill()
    killed.communicate()
    with hands.open("shell", hands.name) as closed:
        closed.type(f"{SLOW}\n")
        closed.wait_for("begun")
        closed.wait_for("begun")  # the first one is what was typed
        closed.hang_up()
        assert closed.process.wait(DEADLINE) != 0
    hands.wait_until_nothing_is_left()
    assert hands.rig.experiment(hands.name)["state"] == "RUNNING"


def test_a_command_ends_with_its_job(hands: Hands) -> None:
    running = hands.start("exec", hands.name, "--", "sh", "-c", "echo begun; sleep 600")
    assert running.stdout is not None
    assert running.stdout.readline() == b"begun\n"
    hands.rig.go_file(hands.name).touch()
    running.communicate(timeout=DEADLINE)
    assert running.returncode in (4, 137)
    assert hands.rig.wait_closed(hands.name)["state"] == "FINISHED"


def test_what_cannot_be_entered_is_said_in_one_sentence(hands: Hands) -> None:
    code, _, err = hands.call("shell", hands.name)
    assert (code, "needs a terminal" in err) == (2, True)
    code, _, err = hands.call("exec", f"{hands.name}.ps", "true")
    assert (code, "has no job ps" in err) == (3, True)
    # The first job has a part of them.
    waits = hands.rig.submit(single(GO, resources={"cpus": os.cpu_count(), "mem": "64MiB"}))["id"]
    code, _, err = hands.call("exec", waits, "true")
    assert (code, f"{waits}.train has not begun, it is " in err) == (4, True)
    hands.rig.post(f"/v1/experiments/{waits}/kill")
    hands.rig.go_file(hands.name).touch()
    hands.rig.wait_closed(hands.name)
    code, _, err = hands.call("exec", hands.name, "true")
    assert (code, f"{hands.name}.train has ended (FINISHED)" in err) == (4, True)


def test_a_shell_asks_which_job(docker_hands: Hands) -> None:
    rig = docker_hands.rig
    name = rig.submit(gang({"master": GO}))["id"]
    rig.wait_state(name, "RUNNING")
    code, _, err = docker_hands.call("exec", name, "true")
    jobs = ", ".join(f"{name}.{job}" for job in ("master", "worker.1", "worker.2", "ps.1"))
    assert (code, f"name one: {jobs}" in err) == (2, True)
    with docker_hands.open("shell", name) as shell:
        shell.wait_for("Number or name")
        shell.type("worker.2\n")
        shell.wait_for(f"A shell in {name}.worker.2")
        shell.type("echo me=$RISEML_JOB; exit\n")
        shell.wait_for("me=worker.2")
        assert shell.finish() == 0


def test_a_command_in_a_container_has_no_more_rights_than_the_job(docker_hands: Hands) -> None:
    code, out, _ = docker_hands.call(
        "exec", docker_hands.name, "--", "grep", "-E", "^(CapEff|NoNewPrivs|Uid)", "/proc/self/status"
    )
    found = dict(line.split(":\t") for line in out.decode().splitlines())
    assert (code, found["CapEff"], found["NoNewPrivs"]) == (0, "0" * 16, "1")
    _, of_job, _ = docker_hands.call("exec", docker_hands.name, "--", "sh", "-c", 'cat "/proc/1/status" | grep ^Uid')
    assert of_job.decode().split() == ["Uid:", *found["Uid"].split()]


def test_a_web_page_opens_no_stream(docker_hands: Hands) -> None:
    door, url = str(docker_hands.rig.home / "server.sock"), f"ws://riseml/v1/experiments/{docker_hands.name}/ports/80"
    with unix_connect(door, url) as stream:
        first = stream.recv(timeout=DEADLINE)
        assert isinstance(first, bytes)
        assert isinstance(decode_message(first), StreamFailure)
    with pytest.raises(InvalidStatus, match="403"):
        unix_connect(door, url, origin=Origin("http://evil.example"))


@pytest.mark.every_engine
def test_nothing_is_left_of_a_command_whose_server_was_killed(hands: Hands) -> None:
    running = hands.start("exec", hands.name, "--", "sh", "-c", SLOW)
    assert running.stdout is not None
    assert running.stdout.readline() == b"begun\n"
    hands.rig.kill()
    _, err = running.communicate(timeout=DEADLINE)
    assert (running.returncode, b"broke the stream; jobs run on" in err) == (5, True)
    hands.rig.start()  # in a container, the next server ends it
    hands.wait_until_nothing_is_left()
    assert hands.rig.experiment(hands.name)["state"] == "RUNNING"
