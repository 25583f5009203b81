"""The relay of Kubeflow's trainer protocol in the shell of a job: what it prints, what it refuses, and when it ends."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from riseml.job_programs import add_report_module, leave_report_module, start_trainer_relay
from riseml.job_programs.trainer_relay import MOST_BODY, MOST_NAMES, TrainerRelay, list_variables
from riseml.store.logs.report_lines import split_report
from tests.support.waiting import DEADLINE

CLIENT = """
import json, os, socket, urllib.error, urllib.request

def post(body, token=None, method="POST"):
    with open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]) as file:
        token = file.read() if token is None else token
    if not isinstance(body, bytes):
        body = json.dumps({"trainerStatus": body}).encode()
    request = urllib.request.Request(os.environ["KUBEFLOW_TRAINER_SERVER_URL"], data=body, method=method,
                                     headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)

def tell(percentage=None, **metrics):
    status = {} if percentage is None else {"progressPercentage": percentage}
    return post(dict(status, metrics=[{"name": name, "value": str(value)} for name, value in metrics.items()]))[0]
"""


def run(folder: Path, program: str, before: str = "", **variables: str) -> tuple[list[str], str]:
    """Run a program as a job with the relay does; return the lines of stdout, and stderr: the relay has ended, too."""
    (folder / "client.py").write_text(CLIENT)
    (folder / "train.py").write_text("from client import *\n" + program)
    lines = f'{before}\n"{sys.executable}" train.py\nwait\necho "$$ ${{KUBEFLOW_TRAINER_SERVER_URL-unset}}" >shell\n'
    done = subprocess.run(
        ["/bin/sh", "-ec", add_report_module(start_trainer_relay() + lines)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "RISEML_JOB": "train", **variables},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    return done.stdout.split("\n")[:-1], done.stderr


def list_reports(lines: list[str]) -> list[dict[str, float]]:
    reports = []
    for line in lines:
        _, report = split_report(line.encode())
        assert report is not None, line
        reports.append(json.loads(report.removeprefix(b"riseml.report ")))
    return reports


def test_reports_become_lines_and_a_value_counts_once(tmp_path: Path) -> None:
    lines, errors = run(
        tmp_path,
        "assert tell(0, total_steps=8) == 200\n"
        "assert tell(12, loss=0.5, lr='1e-05', current_step=1, total_steps=8, current_epoch=0.1) == 200\n"
        "assert tell(25, loss=0.5, lr='2e-05', note='words', current_step=2, total_steps=8) == 200\n"
        "assert tell(100, loss='nan') == 200\n",
    )
    assert errors == ""
    reports = list_reports(lines)
    values = [report for report in reports if "riseml.of" not in report]
    assert [str(report) for report in values] == [
        "{'step': 1, 'loss': 0.5, 'lr': 1e-05}",
        "{'step': 2, 'lr': 2e-05}",
        "{'step': 8, 'loss': nan}",
    ]
    assert reports[-2] == {"riseml.done": 8, "riseml.of": 8}
    assert stat.S_IMODE((tmp_path / ".riseml" / "trainer_token").stat().st_mode) == 0o600


@pytest.mark.parametrize("has_descriptor", [True, False])
def test_the_relay_ends_with_its_shell(*, has_descriptor: bool) -> None:
    """Python before 3.9 has no descriptors of processes, and engines may refuse them."""
    with socket.create_server(("127.0.0.1", 0)) as listener, subprocess.Popen(["cat"], stdin=subprocess.PIPE) as shell:
        end = os.pidfd_open(shell.pid) if has_descriptor else -1
        relay = threading.Thread(target=TrainerRelay(listener, "t").follow, args=(shell.pid, end), daemon=True)
        relay.start()
        assert relay.is_alive()
        shell.kill()
        relay.join(DEADLINE)
        assert not relay.is_alive()
        if has_descriptor:
            os.close(end)


@pytest.mark.parametrize("own", ["https://there/status", ""])
def test_a_trainer_of_the_user_is_left_alone(tmp_path: Path, own: str) -> None:
    run(tmp_path, "", KUBEFLOW_TRAINER_SERVER_URL=own)
    assert (tmp_path / "shell").read_text().split(" ", 1)[1] == f"{own}\n"
    assert not (tmp_path / ".riseml" / "trainer_token").exists()


def test_a_job_whose_relay_cannot_start_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".riseml" / "trainer_token").mkdir(parents=True)
    _, errors = run(tmp_path, "assert 'KUBEFLOW_TRAINER_SERVER_URL' not in os.environ\n")
    assert errors.startswith("riseml: reports of the trainer are not read: ")


def test_what_is_no_report_is_refused_and_a_flood_is_bounded(tmp_path: Path) -> None:
    """Also with connections that send nothing, and with more metrics than the server keeps."""
    lines, errors = run(
        tmp_path,
        "refused = [post({}, token='x'), post({}, token=''), post({}, method='PUT'), post(b'{'), post(b'[]'),\n"
        "           post(b'{\"trainerStatus\": 1}'), post({'progressPercentage': 'all'}), post({'metrics': {}}),\n"
        "           post({'metrics': [{'name': 'loss', 'value': 1}]}), post(b'[' * 50000), post(b'\\xff')]\n"
        "assert [code for code, _ in refused] == [401, 401, 405, *[400] * 8], refused\n"
        "assert refused[0][1]['kind'] == 'Status'\n"
        f"assert post(b'x' * {MOST_BODY + 1})[0] == 413\n"
        "address = ('127.0.0.1', int(os.environ['KUBEFLOW_TRAINER_SERVER_URL'].rpartition(':')[2]))\n"
        "silent = [socket.create_connection(address) for _ in range(20)]\n"
        "silent[-1].sendall(b'POST / HTTP/1.1\\r\\n' * 2000)\n"
        "assert tell(50, **{'a\\nb': 1, 'c\\x1eriseml.report {\"x\": 1}': 2, 'long': '1' * 41, 'ok': '1'}) == 200\n"
        f"for first in range(0, {2 * MOST_NAMES}, 50):\n"
        "    assert tell(**{f'n{number}': 1 for number in range(first, first + 50)}) == 200\n",
    )
    reports = list_reports(lines)
    names = {name for report in reports for name in report}
    assert names - {"riseml.done", "riseml.of"} == {"ok", *(f"n{number}" for number in range(MOST_NAMES - 3))}
    assert errors.count("is not a name of a metric") == 2
    assert errors.count(f"more than {MOST_NAMES} metrics") == 1


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"http_proxy": "http://proxy"}, "127.0.0.1"),
        ({"HTTP_PROXY": "http://proxy", "NO_PROXY": ".local"}, ".local,127.0.0.1"),
        ({"no_proxy": ".local"}, None),
    ],
)
def test_a_proxy_of_the_job_gets_no_report(environment: dict[str, str], expected: str | None) -> None:
    assert list_variables(1, "token", environment).get("no_proxy") == expected


def test_an_exported_run_starts_no_relay() -> None:
    assert "trainer_relay" not in leave_report_module(add_report_module(start_trainer_relay() + "true"))
