"""What a person types about a pool, against real engines."""

from __future__ import annotations

import json
import os
import subprocess

from tests.real.e2e.console import RISEML
from tests.real.pool.conftest import PoolRig
from tests.support.rig import BASE, single


def ask(rig: PoolRig, *words: str, code: int = 0) -> str:
    """What a command prints, which ends with this code."""
    env = {**rig.environ(), "COLUMNS": "200"}
    done = subprocess.run([*RISEML, *words], env=env, cwd=rig.home, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_the_commands_of_the_pool(pool_rig: PoolRig) -> None:
    ask(pool_rig, "pool", "join")
    shown = ask(pool_rig, "pool")
    assert all(name in shown for name in ("h1", "h2", "h3", "manager", "0/2", "Network across hosts: overlay"))
    assert "FAILED" not in ask(pool_rig, "pool", "check")
    assert "h2 gets no new jobs. No job runs there." in ask(pool_rig, "pool", "drain", "h2")
    assert "drained" in ask(pool_rig, "pool")
    assert "h2 takes new jobs again." in ask(pool_rig, "pool", "resume", "h2")
    assert "no host h9" in ask(pool_rig, "pool", "drain", "h9", code=3)
    assert ask(pool_rig, "system", "info", "-l").count("Docker ") >= 3


def test_a_job_on_each_host(pool_rig: PoolRig) -> None:
    found = json.loads(ask(pool_rig, "system", "test", "--image", BASE, "--json"))["findings"]
    assert [(one["host"], one["outcome"]) for one in found] == [("h1", "ok"), ("h2", "ok"), ("h3", "ok")]
    assert "there is no such host" in ask(pool_rig, "system", "test", "h9", code=1)


def test_explain_names_what_is_missing(pool_rig: PoolRig) -> None:
    big = {"resources": {"cpus": 2, "mem": "64MiB", "labels": {"host": "h2"}}}
    for _ in range(2):
        pool_rig.submit(single("sleep 600", **big))
    pool_rig.wait_state("1", "RUNNING")
    pool_rig.wait_state("2", "PENDING")
    waits = ask(pool_rig, "explain", "2")
    assert "Place in the queue: 1 of 1" in waits
    assert "cpus: needs 2, 0 free of 2 (held by 1)" in waits
    assert "host=h2" in waits
    assert "h2" in ask(pool_rig, "explain", "1")
    assert "there is no experiment 9" in ask(pool_rig, "explain", "9", code=3)
    assert "pool.yml has 1 problem" in _with_a_broken_file(pool_rig)


def _with_a_broken_file(rig: PoolRig) -> str:
    (rig.home / "pool.yml").write_text("hosts: []\n")
    os.utime(rig.home / "pool.yml")
    shown = ask(rig, "pool")
    assert "\\x0a" not in shown
    return shown
