"""`riseml notebook`: a real JupyterLab, reached through the forward with its token."""

from __future__ import annotations

import json
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from tests.real.streams.conftest import Hands
from tests.support.rig import BASE, Rig, single
from tests.support.waiting import DEADLINE

JUPYTER = "riseml-test/jupyter:4.6.6"


def ask(address: str, path: str, token: str, body: object = None) -> Any:
    """Return an answer of Jupyter's own API; a body is posted."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/api/{path}", content, {"Authorization": f"token {token}"})
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        return json.load(answer)


def enter_project(rig: Rig, config: str) -> Hands:
    """Write a project beside the home of the server; return calls from there."""
    hands = Hands(rig)
    hands.folder = rig.home.parent / "project"
    hands.folder.mkdir()
    (hands.folder / "riseml.yml").write_text(config)
    (hands.folder / "model.py").write_text("answer = 42\n")
    return hands


@contextmanager
def open_notebook(hands: Hands, *words: str) -> Iterator[tuple[Popen[bytes], str, str]]:
    """Run `riseml notebook`; give its process, its address and its token."""
    process = hands.start("notebook", *words, "--port", "0", "--json")
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, process.communicate()
        (shown,) = json.loads(line)["forwards"]
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/lab\?token=([0-9a-f]{48})", shown["address"])
        assert found, shown
        yield process, found[1], found[2]
    finally:
        process.kill()
        process.communicate()


def test_jupyter_answers_with_its_token_alone(docker_rig: Rig) -> None:
    resources = {"cpus": 0.1, "mem": "256MiB"}
    hands = enter_project(docker_rig, single("python3 train.py", image=JUPYTER, resources=resources))
    with open_notebook(hands, "--mem", "512MiB", "--idle-timeout", "2h") as (process, address, token):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(address, "contents", "0" * 48)
        assert {one["name"] for one in ask(address, "contents", token)["content"]} == {"model.py", "riseml.yml"}
        kernel = ask(address, "kernels", token, {})
        assert kernel["name"] == "python3"
        ask(address, "contents", token, {"type": "notebook"})
        (job,) = [job for job in docker_rig.experiment("1")["jobs"] if job["name"] == "notebook"]
        assert (job["state"], job["mem_mib"]) == ("RUNNING", 512)
        _check_that_nothing_shows(docker_rig, hands, token)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 130
    with open_notebook(hands, "1") as (process, address, same):
        assert same == token
        assert ask(address, "kernels", token)[0]["id"] == kernel["id"]
        assert hands.call("kill", "1", "-f")[0] == 0
        assert process.wait(DEADLINE) == 4
    ended = docker_rig.wait_closed("1")
    assert Path(ended["output"], "code", "Untitled.ipynb").is_file(), "what was saved stays"
    code, _, err = hands.call("notebook", "1")
    assert (code, "notebook 1 has ended (KILLED)" in err) == (4, True)


def _check_that_nothing_shows(rig: Rig, hands: Hands, token: str) -> None:
    """The token is neither in the log nor in the status, nor in the record of the run."""
    shown = hands.call("status", "1")[1].decode()
    assert "Type: Notebook" in shown
    assert "JupyterLab: `riseml notebook 1` opens it" in shown
    record = Path(rig.experiment("1")["output"], "riseml-configuration.yml").read_text()
    log = "\n".join(rig.lines("1", follow=False))
    assert "/lab?token=..." in log
    assert not any(token in text for text in (shown, log, record, json.dumps(rig.experiment("1")), rig.last_words()))


def test_an_environment_without_jupyter_is_one_sentence(docker_rig: Rig) -> None:
    """The image has none, and no pip to install it."""
    hands = enter_project(docker_rig, single("true", install="rm -r /usr/lib/python3/dist-packages/pip"))
    code, _, err = hands.call("notebook")
    assert code == 1, err
    assert "the environment has no JupyterLab, or could not be made" in err
    assert "No module named pip" in err
    assert BASE in docker_rig.experiment("1")["image"]
