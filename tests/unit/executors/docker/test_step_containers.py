"""The container of one install step, and the image that it leaves."""

from __future__ import annotations

from typing import Any

from riseml.executors.docker.labels import BUILD_SERVER, ENVIRONMENT, STEP, STEP_SERVER
from riseml.executors.docker.step_containers import image_config, list_steps, make_host_config, step_request
from riseml.planning.image import Manifest, plan_image

ONE = plan_image("base", ("pip install a",), Manifest())
TWO = plan_image("base", ("pip install a", "pip install b"), Manifest())


def list_digests(*rows: tuple[Any, str, str]) -> list[list[str]]:
    return [[step.digest for step in list_steps(*row)] for row in rows]


def test_environments_that_begin_alike_share_the_images_of_their_first_steps() -> None:
    one, two, again = list_digests((ONE, "b1", "f1"), (TWO, "b1", "f1"), (TWO, "b1", "f1"))
    assert two == again
    assert one[0] == two[0]
    assert one[1] not in two
    other_base, other_files = list_digests((TWO, "b2", "f1"), (TWO, "b1", "f2"))
    assert not {*other_base, *other_files} & set(two)


def test_holders_share_no_step() -> None:
    step = ("curl https://example.org/x | sh",)
    paul, ann = (plan_image("base", step, Manifest(holder=holder)) for holder in ("user:paul", "user:ann"))
    of_paul, of_ann = list_digests((paul, "b1", "f1"), (ann, "b1", "f1"))
    assert not set(of_paul) & set(of_ann)


def test_a_step_is_as_confined_as_a_job_but_for_owners_and_modes_of_files() -> None:
    step = next(list_steps(ONE, "b1", "f1"))
    request = step_request(
        step, "below", "5e17e4", {"Healthcheck": {"Test": ["CMD", "x"]}}, make_host_config(64, "own")
    )
    config = request["HostConfig"]
    assert config["CapDrop"] == ["ALL"]
    assert not {"MKNOD", "NET_RAW", "SYS_CHROOT", "NET_BIND_SERVICE", "AUDIT_WRITE", "KILL"} & set(config["CapAdd"])
    assert config["SecurityOpt"] == ["no-new-privileges"]
    assert (config["PidsLimit"], config["Memory"], config["NetworkMode"]) == (4096, 64 << 20, "own")
    assert not config["Privileged"]
    assert "Devices" not in config and "Mounts" not in config
    assert request["Cmd"][-len(step.command) :] == list(step.command), "the shell that counts kills runs it"
    assert request["Healthcheck"] == {"Test": ["NONE"]}
    assert "Env" not in request, "an image gets no variable of the build"


def test_an_image_keeps_the_configuration_of_its_base() -> None:
    step = next(list_steps(ONE, "b1", "f1"))
    base = {"User": "7", "Env": ["A=1"], "Entrypoint": ["/e"], "Cmd": None, "Labels": {"x": "1"}, "Hostname": "h"}
    made = image_config(step, base, "digest", "a1b2")
    assert (made["User"], made["Env"], made["Entrypoint"], made["Cmd"]) == ("7", ["A=1"], ["/e"], None)
    assert made["WorkingDir"] == "/code"
    assert made["Labels"] == {"x": "1", STEP: step.digest, STEP_SERVER: "a1b2", BUILD_SERVER: "", ENVIRONMENT: "digest"}
    assert "Hostname" not in made
    assert ENVIRONMENT not in image_config(step, base, "", "a1b2")["Labels"]
    assert image_config(step, {}, "", "a1b2")["Cmd"] == ["/bin/sh"], "the engine would take the step itself"
