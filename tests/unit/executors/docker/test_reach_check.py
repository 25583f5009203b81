"""What `riseml pool check` says about what jobs reach besides the network."""

from __future__ import annotations

from typing import Any

import docker
import pytest

from riseml.executors.capabilities import Outcome
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.docker.reach_check import METADATA, Reach, check_reach, describe_reach
from tests.unit.executors.docker.held_containers import FakeEngine, HeldContainers


def test_each_thing_that_jobs_reach_comes_with_the_rule_that_closes_it() -> None:
    both = describe_reach(Reach(metadata=True, host_from=("10.213.0.0/16",)))
    assert [one.outcome for one in both] == [Outcome.NOTE, Outcome.NOTE]
    assert "`iptables -I DOCKER-USER -d 169.254.169.254 -j DROP` closes it" in both[0].message
    assert "`iptables -I INPUT -s 10.213.0.0/16 -m conntrack --ctstate NEW -j DROP` closes them" in both[1].message
    assert [one.topic for one in both] == ["reach", "reach"]
    for reach in (Reach(metadata=False, host_from=("10.213.0.0/16",)), Reach(metadata=True, host_from=())):
        metadata, host = describe_reach(reach)
        outcomes = (metadata.outcome is Outcome.NOTE, host.outcome is Outcome.NOTE)
        assert outcomes == (reach.metadata, bool(reach.host_from))
        assert METADATA in metadata.message
        assert "services of this host" in host.message
    (closed,) = describe_reach(Reach(metadata=False, host_from=()))
    assert closed.outcome is Outcome.OK


def test_each_network_by_which_jobs_go_out_has_its_own_rule() -> None:
    _, host = describe_reach(Reach(metadata=False, host_from=("10.213.0.0/16", "172.18.0.0/16")))
    rule = "`iptables -I INPUT -s {} -m conntrack --ctstate NEW -j DROP`"
    assert f"{rule.format('10.213.0.0/16')} and {rule.format('172.18.0.0/16')} close them" in host.message


class ManyImages(HeldContainers):
    """An engine whose newest images have no Python."""

    def __init__(self) -> None:
        super().__init__()
        self.acts: list[str] = []  # on networks

    def images(self, *_: Any, **_options: Any) -> Any:
        return [{"RepoTags": [f"image:{number}"], "Created": number} for number in range(20)]

    def create_container_from_config(self, config: Any, name: str | None = None, platform: str | None = None) -> Any:
        if config["Image"] != "image:1":
            raise docker.errors.ImageNotFound("it was just removed")
        super().create_container_from_config(config, name)

    def create_network(self, *_: Any, **_options: Any) -> Any:
        self.acts.append("create")
        return {"Id": "4e70" * 16}

    def remove_network(self, *_: Any, **_options: Any) -> None:
        self.acts.append("remove")

    def start(self, *_: Any, **_options: Any) -> None:
        pass

    def wait(self, *_: Any, **_options: Any) -> Any:
        return {"StatusCode": 0}

    def logs(self, *_: Any, **_options: Any) -> Any:
        return b'{"host": true, "metadata": false}'


def find_reach(api: ManyImages) -> list[str]:
    """Return what the check says, up to the first comma of each sentence."""
    findings = check_reach(api, Helpers(FakeEngine(api), "5e17e4", HelperRegistry()), "10.213.0.0/16")
    return [finding.message.partition(",")[0] for finding in findings]


def test_what_jobs_reach_is_found_out_with_any_image_that_has_python() -> None:
    api = ManyImages()
    assert find_reach(api)[1] == "jobs reach services of this host"
    assert api.rows == {}


def test_the_images_are_tried_in_one_network() -> None:
    api = ManyImages()
    find_reach(api)
    assert api.acts == ["create", "remove"]


def test_an_engine_without_images_gets_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    api = ManyImages()
    monkeypatch.setattr(api, "images", lambda: [])
    assert find_reach(api)[0].startswith("what jobs reach is not known: the host has no image with Python")
    assert api.acts == []


def test_a_network_that_cannot_be_removed_hides_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    api = ManyImages()

    def refuse(*_: Any, **_options: Any) -> None:
        raise docker.errors.APIError("the engine is busy")

    monkeypatch.setattr(api, "remove_network", refuse)
    assert find_reach(api)[1] == "jobs reach services of this host"
