"""Virtual environments: made once, shared, bounded, and followed by the next server when one was killed."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from uv import find_uv_bin

from riseml.base.errors import EngineError
from riseml.base.states import Reason
from riseml.control.advice.advise import advise
from riseml.control.advice.known_failure import FailedJob
from riseml.executors.build_limits import BuildLimits
from riseml.executors.environments import this_machine
from riseml.executors.environments.venv_recipe import choose_packages
from riseml.files.archives.project_files import TarFiles
from riseml.model import Image
from riseml.planning.image import Manifest, plan_image
from tests.real.process.conftest import message, wait
from tests.support.archives import pack
from tests.support.builds import make_build_request as order
from tests.support.builds import make_environments
from tests.support.hosts import Machine, kill
from tests.support.rig import BASE, Rig
from tests.support.waiting import DEADLINE
from tests.support.wheels import make_wheel

ROOT_LINES = [
    "apt-get install -y git",
    "apt install git",
    "DEBIAN_FRONTEND=noninteractive apt-get -y install git",
    "pip install x && apt-get update",
    "sudo pip install x",
    "cd /; yum install git",
    "(dnf install git)",
    "/usr/bin/apt-get install git",
    "if true; then apk add git; fi",
    "env A=1 apt-get install git",
]
HARMLESS_LINES = [
    "echo apt-get",
    "pip install apt-pkg-lists",
    "python -c 'print(1)' # apt-get",
    "pip install -r apt.txt",
    "ls /etc/apt",
]

BUILDER = """
import sys
from pathlib import Path
from tests.support.builds import make_build_request, make_environments
from riseml.model import Image
environments = make_environments(Path(sys.argv[1]), sys.argv[3])
environments.ensure_environment(make_build_request(Image("plain", (sys.argv[2],), (), "digest")))
"""


@pytest.mark.parametrize("line", ROOT_LINES)
def test_steps_that_need_root_are_refused_before_the_build_starts(tmp_path: Path, line: str) -> None:
    lines: list[str] = []
    image = Image("plain", ("touch made", line), (), "digest")
    with pytest.raises(EngineError) as error:
        make_environments(tmp_path / "environments").ensure_environment(order(image, lines))
    assert error.value.permanent
    assert "install step 2" in message(error)
    assert line in message(error)
    assert "docker executor" in message(error)
    assert lines == []
    assert not (tmp_path / "environments").exists()


def test_steps_that_only_name_a_package_manager_run(tmp_path: Path) -> None:
    image = Image("plain", tuple(f"true || {line}" for line in HARMLESS_LINES), (), "digest")
    environments = make_environments(tmp_path)
    environments.ensure_environment(order(image))
    assert environments.observe_environment(image.reference).present


@pytest.mark.parametrize(
    ("base", "gpus", "package"),
    [
        ("tensorflow/tensorflow:2.21.0", False, "tensorflow-cpu==2.21.0"),
        ("tensorflow/tensorflow:2.21.0", True, "tensorflow[and-cuda]==2.21.0"),
        ("tensorflow/tensorflow:2.21.0-gpu", False, "tensorflow-cpu==2.21.0"),
        ("tensorflow/tensorflow:2.16.1-gpu-jupyter", True, "tensorflow[and-cuda]==2.16.1"),
        ("docker.io/tensorflow/tensorflow:2.20.0rc0", False, "tensorflow-cpu==2.20.0rc0"),
        ("tensorflow/tensorflow:latest", False, "tensorflow-cpu"),
        ("tensorflow/tensorflow", False, "tensorflow-cpu"),
        ("tensorflow/tensorflow:nightly", False, None),
        ("pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime", True, "torch==2.6.0"),
        ("docker.io/pytorch/pytorch:latest", False, "torch"),
        ("pytorch/torchserve:0.12.0", False, None),
        ("example/tensorflow:2.21.0", False, None),
        ("python:3.11", False, None),
    ],
)
def test_packages_replace_the_images_of_frameworks(
    monkeypatch: pytest.MonkeyPatch, base: str, *, gpus: bool, package: str | None
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    packages, remark = choose_packages(base, gpus=gpus)
    assert packages[:1] == ((package,) if package else ())
    assert bool(remark) == (package is None)


def test_the_build_says_that_it_does_not_use_another_image(tmp_path: Path) -> None:
    lines: list[str] = []
    make_environments(tmp_path).ensure_environment(order(Image("company/base:1"), lines))
    assert [line for line in lines if "company/base:1 is not used" in line]


def test_steps_run_in_the_environment_and_see_the_files_that_they_name(tmp_path: Path) -> None:
    snapshot = tmp_path / "code.tar"
    snapshot.write_bytes(pack({"needs.txt": "six", "secret.py": ""}))
    image = plan_image("plain", ("cat needs.txt; ls; command -v pip; command -v python",), Manifest({"needs.txt": "1"}))
    lines: list[str] = []
    environments = make_environments(tmp_path / "environments")
    environments.ensure_environment(order(image, lines, TarFiles(snapshot)))
    folder = environments.find_folder(image.reference)
    assert lines[-3:] == ["sixneeds.txt", f"{folder}/bin/pip", f"{folder}/bin/python"]


def test_a_step_that_fails_leaves_no_environment(tmp_path: Path) -> None:
    environments = make_environments(tmp_path)
    image = Image("plain", ("echo so; exit 3",), (), "digest")
    with pytest.raises(EngineError, match="install step 1 failed with exit code 3: echo so; exit 3"):
        environments.ensure_environment(order(image))
    assert not environments.observe_environment(image.reference).present


def test_a_version_that_no_package_has_fails_the_build(tmp_path: Path) -> None:
    lines: list[str] = []
    with pytest.raises(EngineError) as error:
        make_environments(tmp_path).ensure_environment(order(Image("tensorflow/tensorflow:1.4.0"), lines))
    assert "1.4.0 cannot be installed for Python 3." in message(error)
    assert "docker executor" in message(error)
    assert "No solution found" in "\n".join(lines)


def test_two_builds_at_once_make_one_environment(tmp_path: Path) -> None:
    gate, count = tmp_path / "gate", tmp_path / "count"
    os.mkfifo(gate)
    image = Image("plain", (f"echo built >> {count}; read go < {gate}",), (), "digest")
    outputs: list[list[str]] = [[], []]
    threads = [
        threading.Thread(target=make_environments(tmp_path / "all").ensure_environment, args=(order(image, lines),))
        for lines in outputs
    ]
    threads[0].start()
    wait("the first one builds", count.exists)
    threads[1].start()
    wait("the second one waits", lambda: outputs[1])
    with gate.open("w") as file:
        file.write("go\n")
    for thread in threads:
        thread.join()
    assert count.read_text() == "built\n"
    assert outputs[1] == ["Waiting for another build of the same environment"]


class LeftBuild:
    """A build whose server was killed while its install step waits."""

    def __init__(self, folder: Path) -> None:
        self.server = uuid.uuid4().hex
        self.gate, self.begun = folder / "gate", folder / "begun"
        os.mkfifo(self.gate)
        self.step = f"echo one; echo begun >>{self.begun}; setsid sleep 600 & read go <{self.gate}; echo two; echo two"
        self.image = Image("plain", (self.step,), (), "digest")
        command = [sys.executable, "-c", BUILDER, str(folder / "all"), self.step, self.server]
        builder = subprocess.Popen(command, cwd=Path(__file__).parents[3])
        wait("the build has begun", self.begun.exists)
        kill(builder.pid)
        builder.wait()
        self.environments = make_environments(folder / "all", self.server)
        self.folder = self.environments.find_folder(self.image.reference)
        self.place = self.folder.with_suffix(".build")
        wait("its background process has a session of its own", self.list_detached)

    def list_detached(self) -> list[psutil.Process]:
        """Return its background processes, which the end of the step does not end."""
        return [process for process in self.list_processes() if process.name() == "sleep"]

    def list_processes(self) -> list[psutil.Process]:
        """Return what runs of it."""
        return Machine(self.place).processes(self.server)

    def go_on(self) -> None:
        """Let the step continue."""
        with self.gate.open("w") as file:
            file.write("go\n")


@pytest.fixture
def left_build(tmp_path: Path) -> Iterator[LeftBuild]:
    """Give a build that its server has left; end it afterwards."""
    left = LeftBuild(tmp_path)
    yield left
    for process in left.list_processes():
        process.kill()


def test_the_next_server_follows_a_build_and_each_line_comes_once(left_build: LeftBuild) -> None:
    announced = f"Making a virtual environment with Python {platform.python_version()}"
    lines = [announced, "plain is not used", "--> echo one"]  # what the server has passed on before it was killed
    lines[1] = choose_packages("plain", gpus=False)[1]
    lines[2] = f"--> {left_build.step}"
    following = threading.Thread(
        target=left_build.environments.ensure_environment, args=(order(left_build.image, lines),)
    )
    following.start()
    wait("the rest of the log comes", lambda: "one" in lines)
    left_build.go_on()
    following.join()
    assert lines[:-1] == [announced, lines[1], f"--> {left_build.step}", "one", "two", "two"]
    assert "so ends what it left in the background: sleep 600" in lines[-1]
    assert left_build.begun.read_text() == "begun\n"
    assert left_build.environments.observe_environment(left_build.image.reference).present
    assert not left_build.place.exists()
    assert left_build.list_processes() == []


def test_a_build_that_ended_without_a_server_is_complete(left_build: LeftBuild) -> None:
    left_build.go_on()
    wait("the builder has ended", lambda: not left_build.list_processes())
    lines: list[str] = []
    left_build.environments.ensure_environment(order(left_build.image, lines))
    assert lines[-4:-1] == ["one", "two", "two"]
    assert left_build.begun.read_text() == "begun\n"
    assert left_build.environments.observe_environment(left_build.image.reference).present


def test_a_build_that_no_experiment_waits_for_ends_with_everything_it_started(left_build: LeftBuild) -> None:
    left_build.environments.end_unwanted_builds(frozenset({left_build.image.reference}))
    left_build.environments.remove_environment("other")
    with pytest.raises(EngineError, match="is being made"):
        left_build.environments.remove_environment(left_build.folder.name)
    assert left_build.list_processes()
    left_build.environments.end_unwanted_builds(frozenset())
    wait("its folders are removed", lambda: not left_build.place.exists() and not left_build.folder.exists())
    wait("its processes have ended", lambda: not left_build.list_processes())
    assert list(left_build.environments.list_environments(left_build.server, frozenset())) == []


def test_a_copy_of_the_folder_never_ends_the_build_of_the_original(left_build: LeftBuild, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(left_build.place.parent, copied, symlinks=True)
    copy = make_environments(copied, left_build.server)
    (place,) = copied.glob("*.build")
    copy.end_unwanted_builds(frozenset())
    wait("the copy is removed", lambda: not place.exists())
    assert left_build.list_detached()
    assert left_build.place.exists()


def test_a_build_whose_supervisor_was_killed_begins_again(left_build: LeftBuild) -> None:
    supervised = psutil.Process(json.loads((left_build.place / "state.json").read_text())["pid"])
    supervised.kill()
    supervised.wait(DEADLINE)
    lines: list[str] = []
    again = threading.Thread(target=left_build.environments.ensure_environment, args=(order(left_build.image, lines),))
    again.start()
    wait("it has begun again", lambda: left_build.begun.read_text() == "begun\n" * 2)
    wait("its background process has a session of its own", left_build.list_detached)
    assert len(left_build.list_detached()) == 1
    left_build.go_on()
    again.join()
    assert lines[-4:-1] == ["one", "two", "two"]


@pytest.mark.parametrize(
    ("step", "limits", "problem"),
    [
        ("python -c 'import signal; x = b\"x\" * 400_000_000; signal.pause()'", BuildLimits(mem=128), "more memory"),
        ("sleep 600", BuildLimits(seconds=1.0), "took longer"),
        ("i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; wait", BuildLimits(), "more than 100 processes"),
    ],
    ids=["memory", "time", "processes"],
)
def test_a_build_that_takes_too_much_ends(
    step: str, limits: BuildLimits, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_machine, "PROCESSES", 100)
    server = uuid.uuid4().hex
    environments = make_environments(tmp_path, server, limits)
    with pytest.raises(EngineError, match=re.escape(f"install step 1 ({step})")) as error:
        environments.ensure_environment(order(Image("plain", (step,), (), "digest")))
    assert problem.replace("100", "4,096") in message(error)
    assert error.value.permanent
    assert Machine(tmp_path).processes(server) == []
    assert list(environments.list_environments(server, frozenset())) == []


def test_a_build_goes_on_for_the_experiment_that_still_waits(tmp_path: Path) -> None:
    gate, count = tmp_path / "gate", tmp_path / "count"
    os.mkfifo(gate)
    image = Image("plain", (f"echo built >> {count}; read go < {gate}",), (), "digest")
    environments = make_environments(tmp_path / "all")
    outputs: list[list[str]] = [[], []]
    orders = [order(image, lines) for lines in outputs]
    failures: list[EngineError] = []

    def build(number: int) -> None:
        try:
            environments.ensure_environment(orders[number])
        except EngineError as error:
            failures.append(error)

    threads = [threading.Thread(target=build, args=(number,)) for number in range(2)]
    threads[0].start()
    wait("the first one builds", count.exists)
    threads[1].start()
    wait("the second one waits", lambda: outputs[1])
    orders[0].cancellation.ask()
    threads[0].join(DEADLINE)
    wait("the second one follows", lambda: len(outputs[1]) > 2)
    with gate.open("w") as file:
        file.write("go\n")
    threads[1].join(DEADLINE)
    assert [error.message for error in failures] == ["the build was cancelled"]
    assert count.read_text() == "built\n"
    assert environments.observe_environment(image.reference).present


def test_a_cancelled_build_ends_at_once(tmp_path: Path) -> None:
    lines: list[str] = []
    wanted = order(Image("plain", ("echo $$; sleep 600",), (), "digest"), lines)
    failures: list[EngineError] = []

    def build() -> None:
        try:
            make_environments(tmp_path).ensure_environment(wanted)
        except EngineError as error:
            failures.append(error)

    thread = threading.Thread(target=build)
    thread.start()
    wait("the step runs", lambda: lines[-1:] and lines[-1].isdigit())
    wanted.cancellation.ask()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    assert [error.message for error in failures] == ["the build was cancelled"]


def test_a_removed_python_makes_the_environment_absent(tmp_path: Path) -> None:
    environments = make_environments(tmp_path)
    image = Image("plain")
    environments.ensure_environment(order(image))
    assert environments.observe_environment(image.reference).present
    python = environments.find_folder(image.reference) / "bin" / "python"
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    assert not environments.observe_environment(image.reference).present


def test_install_steps_keep_the_framework_unless_they_say_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels, own = tmp_path / "wheels", tmp_path / "own.txt"
    wheels.mkdir()
    own.write_text("needs-torch==1\n")
    for wheel in (
        ("torch", "2.1.97"),
        ("torch", "2.1.99"),
        ("numpy", "1.9.97"),
        ("needs-torch", "1", "torch"),
        ("needs-torch", "2", "torch"),
        ("needs-new-torch", "1", "torch>=2.1.99"),
    ):
        subprocess.run(make_wheel(*wheel), shell=True, cwd=wheels, check=True)
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    for name in ("PIP_CONSTRAINT", "UV_CONSTRAINT"):
        monkeypatch.setenv(name, str(own))
    environments = make_environments(tmp_path / "all here")
    pip, uv = (f"{tool} install --no-index -f {wheels} " for tool in ("pip", f"{find_uv_bin()} pip"))
    refused = [f"if {tool} needs-new-torch; then exit 9; fi" for tool in (pip, uv)]
    allowed = f"PIP_CONSTRAINT= UV_CONSTRAINT= {pip} needs-new-torch"
    image = Image("pytorch/pytorch:2.1.97", (f"{uv} needs-torch", *refused, allowed), (), "digest")
    lines: list[str] = []
    environments.ensure_environment(order(image, lines))
    brought = "riseml: the install steps keep what the environment brought: torch 2.1.97"
    assert [line for line in lines if line.startswith("riseml: ")] == [brought]
    packages = environments.list_packages(image.reference) or ()
    assert {"needs-torch==1", "needs-new-torch==1", "torch==2.1.99"} <= set(packages)
    for step, following in ((refused[0], refused[1]), (refused[1], allowed)):
        printed = lines[lines.index(f"--> {step}") : lines.index(f"--> {following}")]
        text = " ".join(line.strip() for line in printed)  # uv breaks its sentence where paths are long
        printed.append(text[max(0, text.find("Because")) :])
        failed = FailedJob("1.build", Reason.BUILD_FAILED, None, printed)
        assert "install steps keep torch 2.1.97, which the image or the `version`" in advise(failed, list)


def test_each_role_has_the_environment_of_its_own_steps(process_rig: Rig) -> None:
    learner = {"run": 'test ! -e "$VIRTUAL_ENV/made" && echo plain', "image": "company/learner:1"}
    actor = {"run": 'cat "$VIRTUAL_ENV/made"', "count": 2, "install": ['echo "made for actors" >"$VIRTUAL_ENV/made"']}
    train = {"image": BASE, "resources": {"cpus": 0.1, "mem": "64MiB"}, "roles": {"learner": learner, "actor": actor}}
    process_rig.submit(json.dumps({"project": "toaster", "train": train}))
    found = process_rig.wait_closed("1")
    assert (found["state"], found["exit_code"]) == ("FINISHED", 0), found
    lines = process_rig.lines("1")
    assert {line for line in lines if not line.startswith("1.build ")} == {
        "1.learner plain",
        "1.actor.1 made for actors",
        "1.actor.2 made for actors",
    }
    unused = [line for line in lines if "is not used: jobs run without Docker" in line]
    assert {line.split()[3] for line in unused} == {"company/learner:1", BASE}
