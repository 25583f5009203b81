"""The start of a container that an engine has half made or half removed, as one that was killed meanwhile leaves it."""

from __future__ import annotations

from typing import Any

import docker
import pytest
import requests
from docker.errors import APIError, NotFound

from riseml.base.errors import EngineError
from riseml.base.names import JobName
from riseml.executors.docker import labels
from riseml.executors.docker.job_starts import inspect_own, start_container
from riseml.model import Image, JobKey, Launch, Owner
from riseml.spec.config.types import Limits, Resources

KEY = JobKey(4, JobName("master"), 1)
LAUNCH = Launch(KEY, "5e17e4", "t", "m", Image("a"), (), (), Resources(), Limits(), 64, Owner("paul", 1000, 1000), "")
NAME = "riseml-5e17e4-4-master-a1"


class KilledEngine(docker.APIClient):
    """An engine that has restarted, with one container; it refuses to start it."""

    def __init__(self, words: str = "", *, status: str = "created", key: JobKey = KEY) -> None:
        """Connects to nothing."""
        self.words = words
        self.state = {"Status": status}
        self.marks = labels.job_labels(key, "5e17e4", "t")
        self.removed: list[str] = []

    def start(self, container: Any, *_: object, **__: object) -> None:
        answer = requests.Response()
        answer.status_code = 500
        raise APIError(f"cannot start {container}", answer, self.words)

    def inspect_container(self, *_: object) -> dict[str, Any]:
        if not self.state["Status"]:
            raise NotFound("no such container")
        return {"Config": {"Labels": self.marks}, "State": self.state}

    def remove_container(self, container: Any, *_: object, **__: object) -> None:
        self.removed.append(container)


@pytest.mark.parametrize(
    "words",
    [
        "task 9085aa429c2f: already exists",
        "failed to start shim: mkdir /run/containerd/moby/9085aa429c2f: file exists: unknown",
        "container is marked for removal and cannot be started",
    ],
)
def test_a_container_that_never_starts_again_makes_room_for_another_one(words: str) -> None:
    api = KilledEngine(words)
    with pytest.raises(EngineError) as error:
        start_container(api, NAME, LAUNCH)
    assert (api.removed, error.value.permanent) == ([NAME], False)
    assert words in error.value.message


def test_another_refusal_leaves_the_container() -> None:
    api = KilledEngine("OCI runtime create failed")
    with pytest.raises(APIError):
        start_container(api, NAME, LAUNCH)
    assert api.removed == []


@pytest.mark.parametrize("status", ["dead", "removing"])
def test_a_half_removed_container_is_removed(status: str) -> None:
    api = KilledEngine(status=status)
    with pytest.raises(EngineError) as error:
        inspect_own(api, NAME, KEY)
    assert (api.removed, error.value.permanent) == ([NAME], False)


def test_a_name_that_the_engine_is_giving_away_or_taking_back_is_waited_for() -> None:
    with pytest.raises(EngineError, match="makes or removes") as error:
        inspect_own(KilledEngine(status=""), NAME, KEY)
    assert not error.value.permanent


def test_a_container_of_another_job_stays() -> None:
    api = KilledEngine(status="dead", key=JobKey(5, JobName("master"), 1))
    with pytest.raises(EngineError, match="does not belong to this job") as error:
        inspect_own(api, NAME, KEY)
    assert (api.removed, error.value.permanent) == ([], True)
