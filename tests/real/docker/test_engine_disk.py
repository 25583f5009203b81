"""How full the disk of an engine is: the kernel of this machine and a program in a container say the same."""

from __future__ import annotations

import uuid

import docker
import pytest

from riseml.executors.docker.engine_disk import EngineDisk
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.docker.tiny_program import ProgramRun, run_program
from riseml.executors.transports.engine_client import Engine
from tests.support.waiting import DEADLINE, wait_for

pytestmark = pytest.mark.every_engine

SERVER = uuid.uuid4().hex


def make_helpers(engine_url: str) -> Helpers:
    return Helpers(Engine(engine_url), SERVER, HelperRegistry())


def test_a_container_and_the_kernel_say_the_same(engine_url: str) -> None:
    near, far = make_helpers(engine_url), make_helpers(engine_url)
    far.engine.is_local = False

    def look() -> bool:  # other tests write to this disk meanwhile
        here, there = EngineDisk(near).read_disk(), EngineDisk(far).read_disk()
        assert here is not None
        assert there is not None
        assert there.device == ""
        return 0 < here.percent <= 100 and abs(here.percent - there.percent) <= 1

    wait_for("the same answer", look, DEADLINE)
    with docker.APIClient(base_url=engine_url, version="auto") as api:
        assert api.containers(all=True, filters={"name": f"riseml-{SERVER[:8]}-disk"}) == []


def test_a_processor_without_instructions_says_nothing(engine_url: str) -> None:
    from riseml.executors.docker.engine_disk import _PROGRAM

    with docker.APIClient(base_url=engine_url, version="auto") as api:
        program = type(_PROGRAM)("disk", _PROGRAM.image, "/", {"vax": _PROGRAM.processors["amd64"]})
        assert run_program(api, program, ProgramRun(make_helpers(engine_url), "disk", 10)) is None
