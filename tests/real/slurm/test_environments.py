"""Environments that jobs on nodes make, and what a site puts before the commands of roles."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.support.rig import Rig, single
from tests.support.slurm_cluster import SlurmCluster
from tests.support.wheels import make_wheel

RUNNER = """#!/bin/sh
echo "$@" >>{folder}/calls
[ "$1 $2 $3" = "exec --nv image.sif" ] || exit 9
shift 3
IN_CONTAINER=yes exec "$@"
"""


def install(*lines: str, run: str = "cat made; which python") -> str:
    """Return a riseml.yml whose environment has these install steps."""
    return single(run, install=list(lines))


def test_an_environment_is_made_once_by_a_job_on_a_node(slurm_rig: Rig, cluster: SlurmCluster, tmp_path: Path) -> None:
    lines = (f"echo x >>{tmp_path}/times", 'hostname >made; echo "on $SLURM_JOB_NAME"')
    for _ in range(2):
        slurm_rig.submit(install(*lines))
    for name in ("1", "2"):
        assert slurm_rig.wait_closed(name)["state"] == "FINISHED", slurm_rig.lines(name)
        said = [line.partition(" ")[2] for line in slurm_rig.lines(name)]
        assert {"n1", "n2", "n3"} & set(said), "the file that a step made on a node"
        assert any(line.startswith(str(tmp_path / "shared" / "environments")) for line in said)
    assert (tmp_path / "times").read_text() == "x\n"
    built = [line for name in ("1", "2") for line in slurm_rig.lines(name) if " on riseml-build-" in line]
    assert built, "the log of the job is the log of the build"
    slurm_rig.wait("Slurm runs nothing", lambda: not cluster.ask("squeue", "--noheader"))


def test_a_failing_step_is_the_reason_and_a_kill_ends_the_job_that_an_earlier_server_began(
    slurm_rig: Rig, cluster: SlurmCluster
) -> None:
    slurm_rig.submit(install("echo before", "echo why >&2; exit 3"))
    failed = slurm_rig.wait_closed("1")
    assert (failed["state"], failed["reason"]) == ("FAILED", "BUILD_FAILED")
    assert "install step 2 failed with exit code 3" in failed["message"]
    assert [line for line in slurm_rig.lines("1") if line.endswith(" why")]
    slurm_rig.submit(install("echo begun; sleep 600"))
    slurm_rig.wait("it builds", lambda: [line for line in slurm_rig.lines("2", follow=False) if "begun" in line])
    slurm_rig.kill()
    slurm_rig.start()
    slurm_rig.post("/v1/experiments/2/kill")
    assert slurm_rig.wait_closed("2")["state"] == "KILLED"
    slurm_rig.wait("Slurm runs nothing", lambda: not cluster.ask("squeue", "--noheader"))
    shared = str(slurm_rig.home.with_name("shared"))
    slurm_rig.wait("no process of it is left", lambda: not cluster.find_processes(shared))
    environments = slurm_rig.home.with_name("shared") / "environments"
    slurm_rig.wait("no folder of it is left", lambda: not [one for one in environments.iterdir() if one.is_dir()])


def test_a_build_goes_on_without_the_server_and_the_next_one_finds_it(slurm_rig: Rig, tmp_path: Path) -> None:
    go = tmp_path / "go"
    step = f"echo x >>{tmp_path}/times; echo first; until [ -e {go} ]; do sleep 0.1; done; echo last; hostname >made"
    slurm_rig.submit(install(step))
    slurm_rig.wait("it builds", lambda: "1.build first" in slurm_rig.lines("1", follow=False))
    slurm_rig.kill()
    slurm_rig.start()
    slurm_rig.wait("it is found", lambda: [one for one in slurm_rig.lines("1", follow=False) if "already" in one])
    go.touch()
    assert slurm_rig.wait_closed("1")["state"] == "FINISHED"
    assert (tmp_path / "times").read_text() == "x\n"
    said = slurm_rig.lines("1")
    assert [line for line in said if line in ("1.build first", "1.build last")] == ["1.build first", "1.build last"]
    assert sum(" --> " in line for line in said) == len({line for line in said if " --> " in line})


@pytest.fixture
def prefixed_rig(tmp_path: Path, cluster: SlurmCluster) -> Iterator[Rig]:
    """A server whose roles run in what stands in for a container, after a module was loaded."""
    runner = tmp_path / "apptainer"
    runner.write_text(RUNNER.format(folder=tmp_path))
    runner.chmod(0o755)
    home = tmp_path / "home"
    setup = f"['PATH={tmp_path}:$PATH', 'module() {{ export LOADED=$2; }}', 'module load cuda/12.4']"
    cluster.write_pool(home, f", setup: {setup}, prefix: [apptainer, exec, --nv, image.sif]")
    rig = Rig(home, None)
    rig.host = cluster
    with rig:
        yield rig
        rig.clean_up()


def test_modules_are_loaded_and_the_prefix_comes_before_each_role(prefixed_rig: Rig, tmp_path: Path) -> None:
    prefixed_rig.submit(single('echo "$LOADED $IN_CONTAINER"'))
    assert prefixed_rig.wait_closed("1")["state"] == "FINISHED"
    assert "1.train cuda/12.4 yes" in prefixed_rig.lines("1")
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert call.startswith(f"exec --nv image.sif python3 -S {os.path.realpath(tmp_path)}/shared/gangs/")


@pytest.fixture
def wheel_rig(tmp_path: Path, cluster: SlurmCluster) -> Iterator[Rig]:
    """A server whose nodes have some packages without a network, among them two versions of torch."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for wheel in (
        ("torch", "2.1.97"),
        ("torch", "2.1.99"),
        ("numpy", "1.9.97"),
        ("needs-torch", "1", "torch"),
        ("needs-new-torch", "1", "torch>=2.1.99"),
    ):
        subprocess.run(make_wheel(*wheel), shell=True, cwd=wheels, check=True)
    home = tmp_path / "home"
    cluster.write_pool(home)
    rig = Rig(home, None, UV_FIND_LINKS=str(wheels), UV_OFFLINE="1")
    rig.host = cluster
    with rig:
        yield rig
        rig.clean_up()


def test_install_steps_on_a_node_keep_the_torch_of_the_version(wheel_rig: Rig) -> None:
    brought = "riseml: the install steps keep what the environment brought: torch 2.1.97"
    show = "python -c \"from importlib.metadata import version; print('torch is', version('torch'))\""
    image, uv = "pytorch/pytorch:2.1.97", f"{find_uv_bin()} pip install"
    wheel_rig.submit(single(show, image=image, install=[f"{uv} needs-torch"]))
    found = wheel_rig.wait_closed("1")
    assert found["state"] == "FINISHED", wheel_rig.last_words()
    assert [line for line in wheel_rig.lines("1") if " riseml: " in line] == [f"1.build {brought}"]
    assert "1.train torch is 2.1.97" in wheel_rig.lines("1")
    wheel_rig.submit(single(show, image=image, install=[f"{uv} needs-torch needs-new-torch"]))
    refused = wheel_rig.wait_closed("2")
    assert (refused["state"], refused["reason"]) == ("FAILED", "BUILD_FAILED")
    wheel_rig.submit(single(show, image=image, install=[f"UV_CONSTRAINT= {uv} needs-new-torch"]))
    assert wheel_rig.wait_closed("3")["state"] == "FINISHED", wheel_rig.last_words()
    assert "3.train torch is 2.1.99" in wheel_rig.lines("3")
