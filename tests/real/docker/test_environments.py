"""Environments on an engine: confined steps, kept images, and builds that the next server follows or removes."""

from __future__ import annotations

import io
import re
import uuid

import docker
import pytest

from riseml.base.errors import EngineError, Unreachable
from riseml.executors.build_limits import BuildLimits
from riseml.executors.docker import environment_builds
from riseml.executors.docker.environment_builds import SAVING, write_step_files
from riseml.executors.docker.labels import BUILD_SERVER, STEP
from riseml.executors.docker.log_stream import read_log_frames, read_missed_frames
from riseml.executors.docker.step_containers import OUT_OF_MEMORY, list_steps, make_host_config, step_request
from riseml.job_programs.held_packages import IMAGE_FILE
from riseml.model import LogCursor
from riseml.planning.image import Manifest, plan_image
from tests.support.engine_builds import EngineBuilds
from tests.support.hosts import Engine
from tests.support.rig import BASE, Rig, single
from tests.support.waiting import DEADLINE, wait_for
from tests.support.wheels import make_wheel

PYTORCH = "riseml-test/pytorch:2.13.0"
HELD_TORCH = "riseml: the install steps keep what the environment brought: torch 2.13.0+cpu"
GATED = "echo one; until [ -e /go ]; do sleep 0.1; done; echo two; echo two"

PACKAGE = """
mkdir -p d/DEBIAN d/usr/bin d/var/lib/thing && cd d
printf 'Package: thing\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@example>\\nDescription: x\\n' >DEBIAN/control
printf '#!/bin/sh\\nset -e\\nuseradd --system thing\\nchown thing:thing /var/lib/thing\\n' >DEBIAN/postinst
chmod 755 DEBIAN/postinst
echo x >usr/bin/thing
chown root:shadow usr/bin/thing
chmod 2755 usr/bin/thing
cd .. && dpkg-deb --build d thing.deb
"""
WHEEL = """
python - <<'X'
import zipfile
with zipfile.ZipFile("thing-1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("thing.py", "")
    wheel.writestr("thing-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: thing\\nVersion: 1\\n")
    wheel.writestr("thing-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("thing-1.dist-info/RECORD", "")
X
"""


def leave_out_saving(lines: list[str]) -> list[str]:
    """Return the lines of a build without those that depend on how fast the engine is."""
    return [line for line in lines if not line.startswith(SAVING)]


@pytest.mark.every_engine
def test_packages_of_the_system_and_of_python_install_with_few_capabilities(builds: EngineBuilds) -> None:
    lines = builds.make(
        f"# {builds.server}{PACKAGE}",
        "apt-get install --yes ./thing.deb",
        "stat --format='%U %a' /var/lib/thing; stat --format='%G %a' /usr/bin/thing; id --user --name thing",
        WHEEL + "pip install --no-index ./thing-1-py3-none-any.whl",
    )
    assert {"thing 755", "shadow 2755", "thing"} <= set(lines)
    assert [line for line in lines if "Successfully installed thing-1" in line]
    assert builds.list_left() == []


def test_install_steps_keep_the_torch_of_the_image(builds: EngineBuilds, engine_url: str) -> None:
    wheels = [("torch", "99"), ("needs-torch", "1", "torch"), ("needs-new-torch", "1", "torch>=99")]
    steps = ["; ".join([f"# {builds.server}\ncd /", *(make_wheel(*wheel) for wheel in wheels)])]
    steps.append("pip install --no-index --find-links / needs-torch")
    with pytest.raises(EngineError, match="install step 3 failed"):
        builds.make(*steps, "pip install --no-index --find-links / needs-new-torch", base=PYTORCH)
    lines = builds.lines
    assert builds.list_left() == []
    assert [line for line in lines if line.startswith("riseml: ")] == [HELD_TORCH]
    assert "    The user requested (constraint) torch==2.13.0+cpu" in lines
    made = builds.make(*steps, base=PYTORCH)
    assert "An earlier build has made this step" in made
    look = f"set -e; test ! -e {IMAGE_FILE}; echo ${{PIP_CONSTRAINT-none}}; pip list | grep ^torch"
    with docker.APIClient(base_url=engine_url, version="auto") as api:
        name = f"riseml-test-{builds.server[:12]}"
        reference = next(image for image in builds.images[::-1] if image.startswith("riseml/environment:"))
        api.create_container(reference, ["sh", "-c", look], name=name)
        try:
            api.start(name)
            api.wait(name)
            assert api.logs(name).decode().split() == ["none", "torch", "2.13.0+cpu"]
        finally:
            api.remove_container(name, force=True)


@pytest.mark.every_engine
def test_an_image_has_the_configuration_of_its_base_and_the_packages(builds: EngineBuilds, engine_url: str) -> None:
    base = f"riseml-test/configured:{builds.server[:12]}"
    text = f"FROM {BASE}\n"
    text += 'ENV A=1 B="2 3"\nENTRYPOINT ["/bin/echo", "e"]\nCMD ["c"]\nRUN useradd --create-home ann\nUSER ann\n'
    with docker.APIClient(base_url=engine_url, version="auto") as api:
        list(api.build(fileobj=io.BytesIO(text.encode()), tag=base, rm=True, decode=True))
        try:
            lines = builds.make("id --user --name; pwd; echo $A$B; env >~/env", base=base)
            assert leave_out_saving(lines)[1:] == ["ann", "/code", "12 3"]
            made = api.inspect_image(builds.images[0])["Config"]
            below = api.inspect_image(base)["Config"]
            for name in ("Env", "Entrypoint", "Cmd", "User"):
                assert made[name] == below[name]
            assert made["WorkingDir"] == "/code"
        finally:
            builds.clean_up()
            api.remove_image(base, force=True)


@pytest.mark.every_engine
def test_an_environment_goes_on_from_the_steps_that_an_earlier_one_has_made(builds: EngineBuilds) -> None:
    first = f"echo {builds.server} >/one; echo first"
    lines = leave_out_saving(builds.make(first, "echo second"))
    assert lines == [f"--> {first}", "first", "--> echo second", "second"]
    again = leave_out_saving(builds.make(first, "cat /one"))
    assert again == [f"--> {first}", "An earlier build has made this step", "--> cat /one", builds.server]


@pytest.mark.every_engine
def test_lines_that_a_followed_log_lacks_are_read_when_the_step_has_ended(engine_url: str) -> None:
    """An engine without inotify instances ends a followed log early. The setting is that of the whole machine, so that
    the test leaves frames out itself."""
    with docker.APIClient(base_url=engine_url, version="auto") as api:
        name = str(api.create_container(BASE, ["sh", "-c", "for n in 1 2 3; do echo $n; done"])["Id"])
        try:
            api.start(name)
            api.wait(name)
            frames = [frame for piece in read_log_frames(api, name, LogCursor(), follow=True) for frame in piece]
            assert [frame.data for frame in frames] == [b"1\n", b"2\n", b"3\n"]
            for count in range(4):
                last = frames[count - 1] if count else None
                missed = [frame for piece in read_missed_frames(api, name, count, last) for frame in piece]
                assert missed == frames[count:]
        finally:
            api.remove_container(name, force=True)


@pytest.mark.every_engine
def test_the_log_says_when_the_engine_saves_the_image(builds: EngineBuilds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_builds, "_SAVING_AFTER", 0.0)
    lines = builds.make(f"echo {builds.server}")
    assert f"{SAVING}: the engine writes what install step 1 has changed" in lines


@pytest.mark.every_engine
def test_a_step_that_fails_names_itself_and_leaves_nothing(builds: EngineBuilds) -> None:
    with pytest.raises(EngineError, match="install step 2 failed with exit code 3: exit 3"):
        builds.make(f"echo {builds.server}", "exit 3")
    assert builds.list_left() == []


@pytest.mark.parametrize(
    ("step", "limits", "problem"),
    [
        ("python -c 'x = b\"x\" * 400_000_000'", BuildLimits(mem=64), "used more memory than a build may use"),
        ("sleep 600", BuildLimits(seconds=1.0), "took longer than a build may take"),
    ],
    ids=["memory", "time"],
)
@pytest.mark.every_engine
def test_a_build_that_takes_too_much_ends(engine_url: str, step: str, limits: BuildLimits, problem: str) -> None:
    builds = EngineBuilds(engine_url, limits)
    try:
        with pytest.raises(EngineError, match=re.escape(problem)) as error:
            builds.make(step)
        assert error.value.permanent
        assert builds.list_left() == []
    finally:
        builds.clean_up()


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("python -c 'x = b\"x\" * 400_000_000'", OUT_OF_MEMORY),
        ("python -c 'x = b\"x\" * 400_000_000' || exit 3", OUT_OF_MEMORY),
        ("python -c 'x = b\"x\" * 400_000_000' || exit 0", 0),
        (f"exit {OUT_OF_MEMORY}", 1),
        ("exit 3", 3),
        ("kill -9 $$", 137),
    ],
    ids=["killed", "a failure that follows", "a success that follows", "its own code", "a failure", "SIGKILL"],
)
@pytest.mark.every_engine
def test_a_step_says_itself_that_the_kernel_killed_it_for_its_memory(engine_url: str, script: str, code: int) -> None:
    """The engine may miss it: it hears of the kill only if it watches the container already."""
    api, image = Engine(engine_url).api, plan_image(BASE, (script,), Manifest())
    step = next(list_steps(image, BASE, ""))
    name = f"riseml-{uuid.uuid4().hex[:8]}-step"
    api.create_container_from_config(step_request(step, BASE, name, {}, make_host_config(64, "none")), name)
    try:
        api.start(name)
        assert api.wait(name)["StatusCode"] == code
    finally:
        api.remove_container(name, force=True)


@pytest.mark.every_engine
def test_the_next_server_follows_a_step_and_each_line_comes_once(docker_rig: Rig, engine_url: str) -> None:
    host, server = Engine(engine_url), docker_rig.server_id()
    docker_rig.submit(single("cat /made", install=[f"echo {server}", GATED, "echo 3 >/made"]))
    docker_rig.wait("the step runs", lambda: "1.build one" in docker_rig.lines("1", follow=False))
    docker_rig.kill()
    (row,) = host.rows(server)
    docker_rig.start()
    host.api.exec_start(host.api.exec_create(row["Id"], ["touch", "/go"])["Id"])
    assert docker_rig.wait_closed("1")["state"] == "FINISHED", docker_rig.lines("1")
    said = [line for line in docker_rig.lines("1") if "--> " in line or line.split(" ", 1)[1] in ("one", "two", "3")]
    assert said == [
        f"1.build --> echo {server}",
        f"1.build --> {GATED}",
        "1.build one",
        "1.build two",
        "1.build two",
        "1.build --> echo 3 >/made",
        "1.train 3",
    ]
    assert (host.rows(server), host.shared(server)) == ([], [])


@pytest.mark.every_engine
def test_a_build_of_a_killed_server_ends_with_the_experiment_that_waited(docker_rig: Rig, engine_url: str) -> None:
    host, server = Engine(engine_url), docker_rig.server_id()
    docker_rig.submit(single("true", install=[f"echo {server}; sleep 600 & sleep 600"]))
    docker_rig.wait("the step runs", lambda: host.rows(server, running=True))
    docker_rig.kill()
    docker_rig.start()
    docker_rig.post("/v1/experiments/1/kill")
    assert docker_rig.wait_closed("1")["state"] == "KILLED"
    docker_rig.wait("nothing is left", lambda: not host.rows(server) and not host.shared(server))


@pytest.mark.every_engine
def test_what_no_experiment_waits_for_is_found_and_removed(builds: EngineBuilds, engine_url: str) -> None:
    name = f"riseml-{builds.server[:8]}-build-ab12"
    marks = {BUILD_SERVER: builds.server}
    with docker.APIClient(base_url=engine_url, version="auto") as api:
        api.create_network(name, labels=marks)
        api.create_container(BASE, ["sleep", "600"], name=name, labels=marks)
        api.start(name)
        builds.builds.end_unwanted_builds(frozenset({"riseml/environment:ab12"}))
        builds.builds.find_forgotten(api)
        assert len(builds.list_left()) == 2
        builds.builds.end_unwanted_builds(frozenset())
        wait_for("they are removed", lambda: not builds.list_left(), DEADLINE)


@pytest.mark.every_engine
def test_a_step_that_ended_with_its_engine_begins_again(builds: EngineBuilds, engine_url: str) -> None:
    step = f"echo again {builds.server}"
    image = plan_image(BASE, (step,), Manifest())
    name = f"riseml-{builds.server[:8]}-build-{image.reference.rpartition(':')[2]}"
    with docker.APIClient(base_url=engine_url, version="auto") as api:
        first = next(list_steps(image, str(api.inspect_image(BASE)["Id"]), write_step_files(io.BytesIO(), image, None)))
        marks = {BUILD_SERVER: builds.server, STEP: first.digest}
        api.create_container(BASE, ["sh", "-c", "echo once; kill -9 $$; exit 137"], name=name, labels=marks)
        api.start(name)
        api.wait(name)
    assert leave_out_saving(builds.make(step)) == [f"--> {step}", f"again {builds.server}"]


@pytest.mark.every_engine
def test_a_build_whose_engine_does_not_answer_goes_on(builds: EngineBuilds, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose_connection(*_: object, follow: bool) -> None:
        raise Unreachable("the Docker Engine does not answer: connection reset", None)

    step = f"echo on {builds.server}"
    with monkeypatch.context() as broken:
        broken.setattr(environment_builds, "read_log_frames", lose_connection)
        with pytest.raises(Unreachable):
            builds.make(step)
    assert builds.host.rows(builds.server), "the step has its container"
    assert leave_out_saving(builds.make(step))[-1] == f"on {builds.server}"
    assert builds.list_left() == []
