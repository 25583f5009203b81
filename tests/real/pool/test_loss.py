"""Hosts that fall silent: for a while, for too long, for good; with their network, or with their engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.pool.conftest import PoolRig
from tests.real.pool.engines import EngineHost
from tests.support.rig import gang, single

LOST_AFTER = 45.0  # seconds; an engine of a busy machine has taken 15 to answer while it started containers
WIDE = {"cpus": 1, "mem": "64MiB"}  # with two cpus a host, a gang of four needs two hosts
COUNT = (
    'i=0; until [ -e "$OUTPUT_DIR/go" ]; do echo line $i; i=$((i+1)); sleep 0.1; done; echo $i > "$OUTPUT_DIR/count"'
)
PINNED = {"resources": {"cpus": 0.5, "mem": "64MiB", "labels": {"host": "h2"}}}


@pytest.fixture
def lost_after() -> float:
    """Seconds after which a host that is silent is lost."""
    return LOST_AFTER


@pytest.fixture
def rig(tmp_path: Path, engines: tuple[EngineHost, ...], lost_after: float) -> Iterator[PoolRig]:
    """A pool whose hosts may stop answering; after the test all of them answer again."""
    for name in ("output", "data"):
        (tmp_path / "shared" / name).mkdir(parents=True)
    with PoolRig(tmp_path / "home", engines, tmp_path / "shared", RISEML_LOST_AFTER=str(lost_after)) as rig:
        rig.wait_up()
        rig.post("/v1/pool/join")
        yield rig
        for host in engines:
            host.mend()
            if not host.answers():
                host.start()
        rig.clean_up()


def wait_host(rig: PoolRig, name: str, state: str) -> None:
    """Wait until the server finds a host in this state."""

    def look() -> bool:
        return any(host["name"] == name and host["state"] == state for host in rig.get("/v1/pool")["hosts"])

    rig.wait(f"{name} is {state}", look)


@pytest.mark.parametrize("lost_after", [300.0])  # however long a busy machine takes to see it and to mend it
def test_a_short_silence_costs_nothing(rig: PoolRig) -> None:
    rig.submit(single(COUNT, **PINNED))
    rig.wait_state("1", "RUNNING")
    rig.hosts[1].cut()
    wait_host(rig, "h2", "silent")
    assert rig.experiment("1")["state"] == "RUNNING", "silent is not lost"
    rig.hosts[1].mend()
    rig.go_file("1").touch()
    found = rig.wait_closed("1")
    assert found["state"] == "FINISHED"
    count = int(Path(found["output"], "count").read_text())
    assert rig.lines("1.train") == [f"1.train line {number}" for number in range(count)]


def test_a_lost_host_fails_its_gang_and_is_cleaned_when_it_returns(rig: PoolRig) -> None:
    rig.submit(gang({}, resources=WIDE))
    rig.wait_state("1", "RUNNING")
    places = rig.where()
    lost = next(host for host in rig.hosts if host.name == places["1.worker.2"])
    lost.cut()
    found = rig.wait_state("1", "FAILED")
    assert (found["reason"], found["cause"] is not None) == ("HOST_LOST", True)
    assert any(f"host {name} is silent" in found["message"] for name in places.values()), found["message"]
    assert rig.where(running=True) != {}, "the server cannot end what runs on a lost host"
    lost.mend()
    rig.wait_closed("1")
    rig.check_nothing_left()


def test_retry_takes_other_hosts_when_an_engine_dies(rig: PoolRig) -> None:
    script = {"master": '[ "$RISEML_ATTEMPT" = 2 ] || sleep 600', "worker.1": "sleep 600", "worker.2": "sleep 600"}
    rig.submit(gang(script, resources=WIDE, retry={"max": 1, "on": ["host-lost"]}, stop_grace="1s"))
    rig.wait_state("1", "RUNNING")
    dead = next(host for host in rig.hosts if host.name == rig.where()["1.worker.2"])
    dead.kill()
    found = rig.wait("the experiment has ended", lambda: _ended(rig))
    assert (found["state"], {job["attempt"] for job in found["jobs"]} >= {2}) == ("FINISHED", True), found
    assert dead.name not in {job["host"] for job in found["jobs"]}
    dead.start()
    wait_host(rig, dead.name, "up")
    rig.wait("nothing is left", lambda: rig.containers() == [] and rig.networks() == [])


@pytest.mark.parametrize("lost_after", [300.0])  # a busy machine may silence the other hosts for a while, too
def test_a_stuck_host_delays_no_other(rig: PoolRig) -> None:
    rig.hosts[2].cut()
    wait_host(rig, "h3", "silent")
    rig.submit(single("exit 0"))
    found = rig.wait_closed("1")
    assert found["state"] == "FINISHED", found
    rig.wait("h3's silence has its reason", lambda: rig.get("/v1/pool")["hosts"][2]["message"])


def _ended(rig: PoolRig) -> dict[str, Any] | None:
    found = rig.experiment("1")
    return found if found["state"] in ("FINISHED", "FAILED") else None
