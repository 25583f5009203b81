"""Hosts that manage a Docker Swarm die one after the other, while a gang runs on the other two."""

from __future__ import annotations

from pathlib import Path

import docker

from tests.chaos.ledger import Tally, judge
from tests.chaos.scenes import GO, make_open_scene
from tests.chaos.sites import Fault, Site
from tests.real.pool.conftest import PoolRig
from tests.real.pool.engines import EngineHost, engine_hosts
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE

_LOST_AFTER = "15"  # seconds; managers that lose their leader answer some questions only after 20
_WIDE = {"cpus": 1, "mem": "32MiB"}  # with two cores a host, three jobs need two hosts


def swarm_faults() -> list[Fault]:
    """Return the fault of this module."""
    return [Fault("each manager of a swarm lost", lose_each_manager, ("docker",))]


def lose_each_manager(site: Site) -> Tally:
    """Kill each of three managers in turn; the gang on the other two ends well, and the swarm gets three again."""
    assert site.engine is not None, "the base image comes from an engine"
    found = Tally()
    with engine_hosts(3) as hosts:
        _load_image(site.engine, hosts)
        home = site.home()
        for name in ("output", "data"):
            (home.parent / f"{home.name}-shared" / name).mkdir(parents=True)
        with PoolRig(home, hosts, home.parent / f"{home.name}-shared", RISEML_LOST_AFTER=_LOST_AFTER) as rig:
            try:
                rig.wait_up()
                assert rig.post("/v1/pool/join").status_code == 200
                for number, host in enumerate(hosts, start=1):
                    found += _lose_manager(rig, host, str(number))
            finally:
                rig.clean_up()
    return found


def _lose_manager(rig: PoolRig, host: EngineHost, name: str) -> Tally:
    rig.wait("three hosts manage the swarm", lambda: _count_managers(rig) == 3)
    rig.post(f"/v1/pool/hosts/{host.name}/drain")  # so that the gang is on the other two
    scene = make_open_scene(resources=_WIDE)
    rig.submit(scene.config)
    rig.wait_state(name, "RUNNING")
    rig.wait("it prints", lambda: len(rig.lines(name, follow=False)) > 2)
    host.kill()
    try:
        rig.wait(f"{host.name} is lost", lambda: _is_silent(rig, host.name))
        rig.wait("the swarm has a leader", lambda: not rig.get("/v1/pool")["swarm_trouble"])
        Path(rig.experiment(name)["output"], GO).touch()
        rig.wait_closed(name)  # without the host that is lost
    finally:
        host.start()
        rig.post(f"/v1/pool/hosts/{host.name}/resume")
        rig.wait_up(host.name)
    return judge(rig, scene, 1, name)  # it asks all three engines


def _load_image(engine: str, hosts: tuple[EngineHost, ...]) -> None:
    for host in hosts:
        if not host.api.images(BASE):
            with docker.APIClient(base_url=engine, version="auto", timeout=10 * DEADLINE) as api:
                host.api.load_image(api.get_image(BASE))


def _count_managers(rig: PoolRig) -> int:
    return sum(host["swarm"] == "manager" for host in rig.get("/v1/pool")["hosts"])


def _is_silent(rig: PoolRig, name: str) -> bool:
    return any(host["name"] == name and host["state"] == "silent" for host in rig.get("/v1/pool")["hosts"])
