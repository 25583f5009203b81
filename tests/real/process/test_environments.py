"""Virtual environments: made once, shared, safe under two builds at once and a kill in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from riseml.archives.project_files import TarFiles
from riseml.errors import EngineError
from riseml.executors.environments.venv_recipe import choose_packages
from riseml.executors.environments.venvs import VirtualEnvironments
from riseml.model import Image
from riseml.planning.image import Manifest, plan_image
from tests.real.process.conftest import message, order, wait
from tests.support.archives import pack
from tests.support.hosts import kill
from tests.support.rig import BASE, Rig
from tests.support.waiting import DEADLINE

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
from riseml.executors.environments.venvs import VirtualEnvironments
from tests.real.process.conftest import order
from riseml.model import Image
environments = VirtualEnvironments(Path(sys.argv[1]), gpus=False)
environments.ensure_environment(order(Image("plain", (sys.argv[2],), (), "digest")))
"""


@pytest.mark.parametrize("line", ROOT_LINES)
def test_steps_that_need_root_are_refused_before_the_build_starts(tmp_path: Path, line: str) -> None:
    lines: list[str] = []
    image = Image("plain", ("touch made", line), (), "digest")
    with pytest.raises(EngineError) as error:
        VirtualEnvironments(tmp_path / "environments", gpus=False).ensure_environment(order(image, lines))
    assert error.value.permanent
    assert "install step 2" in message(error)
    assert line in message(error)
    assert "docker executor" in message(error)
    assert lines == []
    assert not (tmp_path / "environments").exists()


def test_steps_that_only_name_a_package_manager_run(tmp_path: Path) -> None:
    image = Image("plain", tuple(f"true || {line}" for line in HARMLESS_LINES), (), "digest")
    environments = VirtualEnvironments(tmp_path, gpus=False)
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
    VirtualEnvironments(tmp_path, gpus=False).ensure_environment(order(Image("company/base:1"), lines))
    assert [line for line in lines if "company/base:1 is not used" in line]


def test_steps_run_in_the_environment_and_see_the_files_that_they_name(tmp_path: Path) -> None:
    snapshot = tmp_path / "code.tar"
    snapshot.write_bytes(pack({"needs.txt": "six", "secret.py": ""}))
    image = plan_image("plain", ("cat needs.txt; ls; command -v pip; command -v python",), Manifest({"needs.txt": "1"}))
    lines: list[str] = []
    environments = VirtualEnvironments(tmp_path / "environments", gpus=False)
    environments.ensure_environment(order(image, lines, TarFiles(snapshot)))
    folder = environments.find_folder(image.reference)
    assert lines[-3:] == ["sixneeds.txt", f"{folder}/bin/pip", f"{folder}/bin/python"]


def test_a_step_that_fails_leaves_no_environment(tmp_path: Path) -> None:
    environments = VirtualEnvironments(tmp_path, gpus=False)
    image = Image("plain", ("echo so; exit 3",), (), "digest")
    with pytest.raises(EngineError, match="install step 1 failed with exit code 3: echo so; exit 3"):
        environments.ensure_environment(order(image))
    assert not environments.observe_environment(image.reference).present


def test_a_version_that_no_package_has_fails_the_build(tmp_path: Path) -> None:
    lines: list[str] = []
    with pytest.raises(EngineError) as error:
        VirtualEnvironments(tmp_path, gpus=False).ensure_environment(order(Image("tensorflow/tensorflow:1.4.0"), lines))
    assert "1.4.0 cannot be installed for Python 3." in message(error)
    assert "docker executor" in message(error)
    assert "No solution found" in "\n".join(lines)


def test_two_builds_at_once_make_one_environment(tmp_path: Path) -> None:
    gate, count = tmp_path / "gate", tmp_path / "count"
    os.mkfifo(gate)
    image = Image("plain", (f"echo built >> {count}; read go < {gate}",), (), "digest")
    outputs: list[list[str]] = [[], []]
    threads = [
        threading.Thread(
            target=VirtualEnvironments(tmp_path / "all", gpus=False).ensure_environment, args=(order(image, lines),)
        )
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


def test_a_build_that_was_killed_is_done_again(tmp_path: Path) -> None:
    """The step that the killed builder started goes on; the second build waits for its end."""
    gate, begun = tmp_path / "gate", tmp_path / "begun"
    os.mkfifo(gate)
    ended = tmp_path / "ended"
    step = f"echo begun >> {begun}; test $(wc -l < {begun}) = 2 || read go < {gate}; echo $$ >> {ended}"
    root = Path(__file__).parents[3]
    builder = subprocess.Popen([sys.executable, "-c", BUILDER, str(tmp_path / "all"), step], cwd=root)
    wait("the build has begun", begun.exists)
    kill(builder.pid)
    builder.wait()
    image = Image("plain", (step,), (), "digest")
    environments = VirtualEnvironments(tmp_path / "all", gpus=False)
    assert not environments.observe_environment(image.reference).present
    lines: list[str] = []
    again = threading.Thread(target=environments.ensure_environment, args=(order(image, lines),))
    again.start()
    wait("the second one waits", lambda: "Waiting for another build of the same environment" in lines)
    assert begun.read_text() == "begun\n"
    with gate.open("w") as file:
        file.write("go\n")
    again.join()
    assert begun.read_text() == "begun\n" * 2
    assert len(ended.read_text().split()) == 2
    assert environments.observe_environment(image.reference).present


def test_a_cancelled_build_ends_at_once(tmp_path: Path) -> None:
    lines: list[str] = []
    wanted = order(Image("plain", ("echo $$; sleep 600",), (), "digest"), lines)
    failures: list[EngineError] = []

    def build() -> None:
        try:
            VirtualEnvironments(tmp_path, gpus=False).ensure_environment(wanted)
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
    environments = VirtualEnvironments(tmp_path, gpus=False)
    image = Image("plain")
    environments.ensure_environment(order(image))
    assert environments.observe_environment(image.reference).present
    python = environments.find_folder(image.reference) / "bin" / "python"
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    assert not environments.observe_environment(image.reference).present


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
