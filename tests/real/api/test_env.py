"""`riseml env`: what it shows is what the job's own `env` prints, and no secret is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.real.api.test_dry_run import ENVIRON, SECRET, riseml, write
from tests.support.rig import Rig, gang, single

FROM_ENV = {"API_TOKEN", "MODE"}
PARAMETERS = {"lr": 0.1, "hub-token": "abc"}


def ask(rig: Rig, folder: Path, *words: str) -> Any:
    result = riseml(rig, folder, "env", *words, "--json")
    assert (result.code, result.err) == (0, ""), result
    assert SECRET not in result.out
    return json.loads(result.out)


def test_env_shows_what_the_job_finds(shared_rig: Rig, tmp_path: Path) -> None:
    rig = shared_rig
    says = 'env | sed "s/^/found /"; exec sleep 600'
    config = gang({"worker.1": says}, env=["API_TOKEN", "MODE=fast", "WORKER_INDEX=9"], parameters=PARAMETERS)
    folder = write(tmp_path / "project", config)
    name = rig.submit(config, environment=ENVIRON)["id"]

    def find_variables() -> dict[str, str] | None:
        lines = [line.split(" ", 2) for line in rig.lines(name, follow=False)]
        found = dict(text.partition("=")[::2] for job, word, text in lines if word == "found")
        return found if {"TF_CONFIG", "API_TOKEN", "HOME", "PWD", "WORKER_INDEX"} <= found.keys() else None

    rig.wait("the job has printed its environment", find_variables)
    rig.wait_state(name, "RUNNING")
    real = rig.wait("the job has printed its environment", find_variables)
    (job, shown), *others = ask(rig, folder, f"{name}.worker.1").items()
    assert (job, others) == ("worker.1", [])
    assert set(shown["hidden"]) == {*FROM_ENV, "HUB_TOKEN"}
    assert shown["variables"].items() <= real.items()
    assert set(shown["hidden"]) <= real.keys()
    assert shown["variables"]["WORKER_INDEX"] == "1", "riseml's own value, whatever `env` says"
    assert list(ask(rig, folder, name)) == ["master", "worker.1", "worker.2", "ps.1"]
    text = riseml(rig, folder, "env", name, "worker").out
    assert text.count("\nLR=0.1\n") == 2
    assert text.startswith(f"{name}.worker.1\nAPI_TOKEN=*** (not shown)\n")
    planned = ask(rig, folder, "-f", "riseml.yml", "worker.1")["worker.1"]
    assert set(planned["hidden"]) == set(shown["hidden"])
    assert planned["variables"].keys() == shown["variables"].keys()
    rig.post(f"/v1/experiments/{name}/kill")
    rig.wait_closed(name)
    ended = ask(rig, folder, f"{name}.worker.1")["worker.1"]
    assert (ended["variables"], set(ended["hidden"])) == (shown["variables"], set(shown["hidden"]))


REFUSED = (
    (("4",), 3, "there is no experiment 4"),
    (("4", "master", "x"), 2, "'x' is one word too many"),
    (("-f", "riseml.yml", "worker.7"), 3, "there is no job worker.7"),
    (("-p", "lr=1"), 2, "-p and --set change a file, not an experiment"),
    (("-f", "riseml.yml", "--set", "train.image="), 2, "riseml.yml has"),
    ((), 3, "project toaster has no experiment yet"),
)


def test_what_env_refuses(docker_rig: Rig, tmp_path: Path) -> None:
    folder = write(tmp_path / "project", single("true"))
    for words, code, said in REFUSED:
        result = riseml(docker_rig, folder, "env", *words)
        assert (result.code, result.out) == (code, ""), words
        assert said in result.err, words
