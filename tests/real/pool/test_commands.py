"""What a person types about a pool, against real engines."""

from __future__ import annotations

import json
import os
import re

from tests.real.pool.conftest import PoolRig
from tests.support.command import run_riseml
from tests.support.rig import BASE, single
from tests.support.waiting import DEADLINE


def ask(rig: PoolRig, *words: str, code: int = 0) -> str:
    """What a command prints, which ends with this code."""
    env = {**rig.environ(), "COLUMNS": "200"}
    done = run_riseml(words, rig.home, env, 3 * DEADLINE)
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


def test_each_host_and_the_network_between_each_pair_are_measured(pool_rig: PoolRig) -> None:
    ask(pool_rig, "pool", "join")
    quick = ("--image", BASE, "--seconds", "0.1", "--cpus", "0.1", "--mem", "64MiB", "--json")
    # On one machine a value of a host may be worse than half of its peers': then the exit code is 1, as it should.
    done = run_riseml(["system", "test", *quick], pool_rig.home, pool_rig.environ(), 3 * DEADLINE)
    found = json.loads(done.stdout)
    assert [finding["host"] for finding in found["findings"]] == ["h1", "h2", "h3"]
    assert [link["hosts"] for link in found["links"]] == [["h1", "h2"], ["h1", "h3"], ["h2", "h3"]]
    everything = [*found["findings"], *found["links"]]
    assert all(one["outcome"] in ("ok", "slow") for one in everything), everything
    assert done.returncode == any(one["outcome"] == "slow" for one in everything)
    for link in found["links"]:
        assert {measure["name"] for measure in link["measures"]} == {"latency", "sent", "received"}
        assert all(measure["value"] > 0 for measure in link["measures"])


def test_a_host_joins_the_pool_and_leaves_it(pool_rig: PoolRig) -> None:
    pool_rig.write_pool("h1")
    before = (pool_rig.home / "pool.yml").read_text()
    url = pool_rig.hosts[1].url
    assert "any client that reaches this port is root" in ask(pool_rig, "pool", "add", "h2", url, code=2)
    added = ask(pool_rig, "pool", "add", "h2", url, "--insecure", "--cpus", "2")
    assert re.search(r"^h1 (made|was in|manages) the swarm", added, re.MULTILINE)
    assert re.search(r"^h2 (joined|was in) the swarm", added, re.MULTILINE), "another test may have joined it"
    assert "reads in" in added
    assert "h2 is in" in added
    big = single("sleep 600", resources={"cpus": 0.1, "mem": "64MiB", "labels": {"host": "h2"}})
    pool_rig.submit(big)
    pool_rig.wait_state("1", "RUNNING")
    refused = ask(pool_rig, "pool", "remove", "h2", code=4)
    assert "1 job runs on host h2: 1.train" in refused
    assert "`riseml pool drain h2`" in refused
    assert pool_rig.post("/v1/experiments/1/kill").status_code == 200
    pool_rig.wait_closed("1")
    assert "h2 would be removed from" in ask(pool_rig, "pool", "remove", "h2", "--dry-run")
    removed = ask(pool_rig, "pool", "remove", "h2")
    assert "It has left the swarm." in removed
    assert (pool_rig.home / "pool.yml").read_text() == before
    assert [host["name"] for host in pool_rig.get("/v1/pool")["hosts"]] == ["h1"]


def test_a_host_with_another_storage_does_not_join(pool_rig: PoolRig) -> None:
    pool_rig.write_pool("h1", storage={"output": {"volume": "riseml-not-shared"}})
    pool_rig.wait_up()
    before = (pool_rig.home / "pool.yml").read_text()
    refused = ask(pool_rig, "pool", "add", "h2", pool_rig.hosts[1].url, "--insecure", code=4)
    assert "host h2 does not fit: output: riseml-not-shared is not the storage that h1 writes" in refused
    assert (pool_rig.home / "pool.yml").read_text() == before


def test_jobs_of_a_system_test_have_what_its_options_say(pool_rig: PoolRig) -> None:
    assert "there is no such host" in ask(pool_rig, "system", "test", "h9", code=1)
    larger = ("--num-jobs", "2", "--num-cpus", "0.5", "--mem", "64MiB", "--force-build-steps", "--seconds", "0.1")
    shorter = ("--rounds", "1", "--stress", "0.1")
    words = ["system", "test", "--host", "h1", "--image", BASE, *larger, *shorter, "--json"]
    found = json.loads(run_riseml(words, pool_rig.home, pool_rig.environ(), 3 * DEADLINE).stdout)["findings"]
    assert [(one["host"], one["outcome"] == "failed") for one in found] == [("h1", False)] * 2
    held = [measure["value"] for one in found for measure in one["measures"] if measure["name"] == "stress memory"]
    assert held == [16, 16]
    ran = [pool_rig.experiment(one["id"]) for one in found]
    assert [(one["jobs"][1]["cpus"], one["jobs"][1]["mem_mib"]) for one in ran] == [(0.5, 64)] * 2
    assert {one["jobs"][0]["reason"] for one in ran} <= {"COMPLETED", "CACHED"}
    assert "COMPLETED" in {one["jobs"][0]["reason"] for one in ran}, "its environment was built"
    assert "this can never run" in ask(pool_rig, "system", "test", "h1", "--num-cpus", "64", "--rounds", "0", code=1)


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


def test_a_host_that_is_taken_out_by_hand_is_named_with_its_jobs(pool_rig: PoolRig) -> None:
    pool_rig.submit(single("sleep 600", resources={"cpus": 0.1, "mem": "32MiB", "labels": {"host": "h2"}}))
    pool_rig.wait_state("1", "RUNNING")
    pool_rig.write_pool("h1", "h3")
    assert "these jobs run there: 1.train. They count as lost in" in ask(pool_rig, "pool")
    found = ask(pool_rig, "pool", "check", code=1)
    assert "is not in pool.yml any more, and these jobs run there, and count as lost soon: 1.train" in found
    log = (pool_rig.home / "server.log").read_text()
    assert "host h2 is not in pool.yml any more, and these jobs run there: 1.train" in log
    pool_rig.write_pool()
    pool_rig.wait_up("h2")
    assert "1.train. They count" not in ask(pool_rig, "pool")
    (pool_rig.home / "pool.yml").write_text("hosts: []\n")
    for words, code in ((("pool", "check"), 1), (("pool", "drain", "h3"), 0), (("pool", "resume", "h3"), 0)):
        assert "pool.yml has 1 problem" in ask(pool_rig, *words, code=code), words
    assert pool_rig.experiment("1")["state"] == "RUNNING"


def _with_a_broken_file(rig: PoolRig) -> str:
    (rig.home / "pool.yml").write_text("hosts: []\n")
    os.utime(rig.home / "pool.yml")
    shown = ask(rig, "pool")
    assert "\\x0a" not in shown
    return shown
