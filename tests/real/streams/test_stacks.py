"""`riseml stacks` on containers and on processes: the line where each job is, and jobs that go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.streams.conftest import Hands
from tests.support.hosts import Engine
from tests.support.rig import BASE, GO, Rig, single

TRAIN = """\
import os, pathlib, threading, time

GO = pathlib.Path(os.environ["OUTPUT_DIR"], "go")
done = threading.Event()

def watch():
    while not GO.exists():
        time.sleep(0.05)
    done.set()

def train(secret):
    print("begun", flush=True)
    done.wait()
    print("finished", flush=True)

threading.Thread(target=watch, name="watch", daemon=True).start()
train("hunter2")
"""
LINE = TRAIN.splitlines().index("    done.wait()") + 1


def start(rig: Rig) -> Hands:
    """Start two workers with the program above, and a job without Python; return when both workers are in `train`."""
    roles = {"worker": {"count": 2}, "ps": {"count": 1, "run": GO}}
    train = {"image": BASE, "resources": {"cpus": 0.1, "mem": "64MiB"}, "roles": roles, "run": "python3 train.py"}
    config = json.dumps({"project": "toaster", "train": train})
    name = rig.submit(config, {"train.py": TRAIN})["id"]
    begun = {f"{name}.worker.1 begun", f"{name}.worker.2 begun"}
    rig.wait("both workers train", lambda: rig.experiment(name)["state"] == "RUNNING")
    rig.wait("both workers have begun", lambda: begun <= {*rig.lines(name, follow=False)})
    return Hands(rig, name)


def read(hands: Hands, *words: str) -> dict[str, Any]:
    """Return the answer of `riseml stacks --json`."""
    code, out, err = hands.call("stacks", *words, "--json")
    assert (code, err) == (0, ""), err
    answer: dict[str, Any] = json.loads(out)
    return answer


@pytest.mark.every_engine
def test_ranks_at_one_line_are_counted_and_every_job_goes_on(shared_rig: Rig) -> None:
    hands = start(shared_rig)
    stacks = hands.rig.wait("both wait", lambda: _find_waiting(hands))
    place = f"Event.wait (train.py:{LINE})"
    assert stacks["summary"].startswith(f"worker.1 and worker.2 wait in {place}, ps.1 runs "), stacks["summary"]
    assert "hunter2" not in json.dumps(stacks)
    jobs = {job["id"]: job["processes"] for job in stacks["jobs"]}
    (worker,) = (process for process in jobs[f"{hands.name}.worker.1"] if process["threads"])
    assert [thread["name"] for thread in worker["threads"]] == ["MainThread", "watch"]
    assert [frame["file"] for frame in worker["threads"][0]["frames"]][-2:] == ["train.py", "train.py"]
    assert not any(process["threads"] or process["trouble"] for process in jobs[f"{hands.name}.ps.1"])
    code, out, err = hands.call("stacks", f"{hands.name}.worker.2", "--native", "--locals")
    assert (code, err) == (0, "")
    text = out.decode()
    assert "worker.1" not in text
    assert 'secret = "hunter2"' in text
    assert "libc" in text
    _record_profile(hands)
    hands.rig.go_file(hands.name).touch()
    assert hands.rig.wait_closed(hands.name)["state"] == "FINISHED"
    finished = [line for line in hands.rig.lines(hands.name) if line.endswith("finished")]
    assert len(finished) == 2
    code, _, err = hands.call("stacks", hands.name)
    assert (code, "has ended (FINISHED)" in err) == (4, True)


def _record_profile(hands: Hands) -> None:
    """A profile has the line in which the job is, and lies in the output of the experiment."""
    code, out, err = hands.call("profile", f"{hands.name}.worker.1", "--seconds", "1", "--idle", "--native", "--json")
    assert (code, err) == (0, "")
    profile = json.loads(out)
    assert f"train (train.py:{LINE})" in {line["call"] for line in profile["top"]}
    assert (profile["seconds"], profile["samples"] > 0, profile["overhead"] > 0) == (1, True, True)
    folder = Path(hands.rig.experiment(hands.name)["output"], "profiles")
    contents = {path.suffix: path.read_text() for path in folder.iterdir()}
    assert f"train (train.py:{LINE})" in contents[".svg"]
    assert json.loads(contents[".json"]) == profile["speedscope"]
    code, _, err = hands.call("profile", f"{hands.name}.ps.1", "--seconds", "1")
    assert (code, "ps.1 could not be recorded: it runs no Python" in err) == (5, True), (code, err)


def _find_waiting(hands: Hands) -> dict[str, Any] | None:
    """Return the stacks once both workers are in the wait: they say that they have begun just before."""
    stacks = read(hands, hands.name)
    return stacks if stacks["groups"][0]["ranks"] == ["worker.1", "worker.2"] else None


def test_a_job_that_has_no_stacks_to_show_is_named(shared_rig: Rig) -> None:
    name = shared_rig.submit(single(GO))["id"]
    shared_rig.wait_state(name, "RUNNING")
    hands = Hands(shared_rig, name)
    for words, code, sentence in (
        ((f"{name}.nobody",), 3, "has no job nobody"),
        (("9999",), 3, "there is no experiment 9999"),
        ((f"{name}.build",), 2, "builds the environment"),
    ):
        found, _, err = hands.call("stacks", *words)
        assert (found, sentence in err) == (code, True), err
    code, out, _ = hands.call("stacks", name)
    assert (code, b"which is not Python" in out) == (0, True)


def test_the_helper_is_gone_when_the_server_was_killed_while_it_read(docker_rig: Rig) -> None:
    hands = start(docker_rig)
    host, server = docker_rig.host, docker_rig.server_id()
    assert isinstance(host, Engine)
    reader = hands.start("stacks", hands.name)
    docker_rig.wait("a helper reads", lambda: "helper stacks" in host.helpers(server))
    docker_rig.kill()
    reader.communicate()
    docker_rig.start()
    docker_rig.wait("the helpers are gone", lambda: not host.helpers(server))
    assert read(hands, hands.name)["summary"]
    docker_rig.go_file(hands.name).touch()
    assert docker_rig.wait_closed(hands.name)["state"] == "FINISHED"
    assert docker_rig.list_left() == []
