"""The pool on three real engines: joined, checked, drained, and the file followed while the server runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from docker.errors import ImageNotFound

from riseml.executors.docker.labels import HELPER, SERVER
from tests.real.pool.conftest import Pool, PoolRig
from tests.real.pool.test_commands import ask
from tests.support.kernel import explain_missing_encryption
from tests.support.rig import BASE, single


def test_joining_makes_one_swarm_and_a_second_time_changes_nothing(pool_rig: PoolRig) -> None:
    for _ in range(2):
        answer = pool_rig.post("/v1/pool/join")
        assert answer.status_code == 200, answer.text
    again = [(one["host"], one["membership"]) for one in answer.json()["members"]]
    assert again == [("h1", "member"), ("h2", "member"), ("h3", "member")]

    def check() -> list[dict[str, str]]:
        found: list[dict[str, str]] = pool_rig.post("/v1/pool/check").json()["findings"]
        return found

    def passes() -> bool:  # a busy engine goes on joining in the background
        quiet = {"encryption": ("note",), "reach": ("note", "ok")}  # no firewall closes the hosts of the tests
        return all(one["outcome"] in quiet.get(one["topic"], ("ok",)) for one in check())

    pool_rig.wait("every host is a member", passes)
    findings = check()
    assert {one["topic"] for one in findings} == {
        "connection",
        "clock",
        "images",
        "swarm",
        "encryption",
        "reach",
        "data",
        "output",
    }


def test_a_kernel_that_cannot_encrypt_is_found_out(pool_rig: PoolRig) -> None:
    pool_rig.write_pool(encrypted=True)
    found = [one for one in pool_rig.post("/v1/pool/check").json()["findings"] if one["topic"] == "encryption"]
    can = explain_missing_encryption() is None
    wanted = {"ok", "note"} if can else {"failed", "note"}  # a note: the kernel's configuration is nowhere to be read
    assert [one["host"] for one in found] == ["h1", "h2", "h3"]
    assert {one["outcome"] for one in found} <= wanted, found
    if Path("/proc/config.gz").exists():
        assert {one["outcome"] for one in found} <= wanted - {"note"}, found


def test_storage_that_is_not_shared_is_found_out(pool_rig: PoolRig) -> None:
    pool_rig.post("/v1/pool/join")
    pool_rig.write_pool(storage={"output": "/var", "data": "/no/such/folder"})

    def find_bad() -> list[dict[str, str]] | None:
        findings = pool_rig.post("/v1/pool/check").json()["findings"]
        bad = [one for one in findings if one["outcome"] == "failed"]
        return bad if {one["topic"] for one in bad} == {"data"} else None  # a busy engine answers late, and joins late

    bad = pool_rig.wait("the data is all that is wrong", find_bad)
    assert "/no/such/folder" in bad[0]["message"]


def test_a_pool_file_with_problems_changes_nothing_and_is_reported(pool_rig: PoolRig) -> None:
    (pool_rig.home / "pool.yml").write_text("hosts:\n- nam: h1\n")
    pool = pool_rig.get("/v1/pool")
    assert 'did you mean "name"' in pool["trouble"]
    assert [host["name"] for host in pool["hosts"]] == ["h1", "h2", "h3"]


def test_a_drained_host_gets_nothing_new_also_after_a_restart(pool_rig: PoolRig) -> None:
    for name in ("h2", "h3"):  # h1 has the image
        assert pool_rig.post(f"/v1/pool/hosts/{name}/drain").json()["state"] == "drained"
    pool_rig.kill()
    pool_rig.start()
    pool_rig.submit(single("sleep 600"))
    pool_rig.wait_state("1", "RUNNING")
    assert set(pool_rig.where().values()) == {"h1"}
    assert pool_rig.post("/v1/pool/hosts/h1/drain").json()["state"] == "draining"
    assert pool_rig.post("/v1/pool/hosts/h9/drain").status_code == 404
    pool_rig.post("/v1/pool/hosts/h3/resume")
    pool_rig.wait_up("h3")
    assert pool_rig.experiment("1")["state"] == "RUNNING"


def test_a_host_that_is_added_is_used(pool_rig: PoolRig) -> None:
    pool_rig.write_pool("h1", hosts={"h1": {"cpus": 0.5}})
    assert len(pool_rig.get("/v1/pool")["hosts"]) == 1
    pool_rig.submit(single("sleep 600", resources={"cpus": 0.4, "mem": "64MiB"}))
    pool_rig.submit(single("sleep 600", resources={"cpus": 0.4, "mem": "64MiB"}))
    pool_rig.wait_state("1", "RUNNING")
    pool_rig.wait_state("2", "PENDING")
    pool_rig.write_pool("h1", "h2", hosts={"h1": {"cpus": 0.5}})
    pool_rig.wait_state("2", "RUNNING")
    assert set(pool_rig.where().values()) == {"h1", "h2"}


def test_a_server_that_stops_leaves_no_helper_on_its_hosts_and_the_next_one_removes_those_of_a_killed_one(
    pool_rig: PoolRig,
) -> None:
    assert isinstance(pool_rig.host, Pool)
    engines = list(pool_rig.host.engines.values())
    server = pool_rig.server_id()

    pool_rig.submit(single("echo x >$OUTPUT_DIR/x"))
    assert pool_rig.wait_closed("1")["state"] == "FINISHED"
    assert "x" in ask(pool_rig, "ls", "output://1").split()
    assert "helper files" in pool_rig.host.helpers(server), "it waits for another request"
    pool_rig.stop()
    assert pool_rig.host.helpers(server) == []
    for engine in engines:
        left = {"Image": BASE, "Cmd": ["true"], "Labels": {SERVER: server, HELPER: "disk"}}
        with suppress(ImageNotFound):
            engine.api.create_container_from_config(left, f"riseml-{server[:8]}-disk-left")
    assert pool_rig.host.helpers(server)
    pool_rig.start()
    pool_rig.wait_up()
    pool_rig.wait("what the killed server left is gone", lambda: not pool_rig.host.helpers(server))
