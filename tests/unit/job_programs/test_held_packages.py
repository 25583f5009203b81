"""Install steps keep what the image brought: which packages, beside which other constraints, and with which Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from riseml.job_programs.held_packages import hold_packages

SHOW = ("/bin/sh", "-ec", 'printf "%s|" "${PIP_CONSTRAINT-none}" "${UV_CONSTRAINT-none}"')


def run_step(folder: Path, packages: tuple[str, ...] = (), **variables: str) -> tuple[str, str]:
    """Return what a step prints and the constraints; `packages` are the names of folders of installed packages."""
    site = folder / "site"
    for package in packages:
        (site / package).mkdir(parents=True, exist_ok=True)
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    if not (tools / "python3").exists():
        (tools / "python3").symlink_to(sys.executable)
    nothing = {"PIP_CONFIG_FILE": os.devnull}  # the machine's own files may name constraints
    environment = {**nothing, "PATH": f"{tools}:/bin:/usr/bin", "PYTHONPATH": str(site), **variables}
    held = folder / "held.txt"
    project = folder / "project"  # a step runs in its folder
    project.mkdir(exist_ok=True)
    (project / "configparser.py").write_text("raise SystemExit('a module of the project')")
    command = hold_packages(SHOW, str(held))
    done = subprocess.run(command, env=environment, cwd=project, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout, held.read_text()


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        ("torch-2.13.0+cpu.dist-info", "torch==2.13.0+cpu"),
        ("torch-2.7.0a0+7c8ec84dab.nv25.3.dist-info", "torch==2.7.0a0+7c8ec84dab.nv25.3"),
        ("pytorch_triton-3.2.0+git0212f921.dist-info", "pytorch-triton==3.2.0+git0212f921"),
        ("tensorflow_cpu-2.21.0.dist-info", "tensorflow-cpu==2.21.0"),
        ("horovod-0.28.1-py3.11.egg-info", "horovod==0.28.1"),
        ("horovod-0.28.1-py3.11-linux-x86_64.egg-info", "horovod==0.28.1"),
        ("jax_cuda12_plugin-0.10.2.dist-info", "jax-cuda12-plugin==0.10.2"),
        ("nvidia_cudnn_cu12-9.1.0.70.dist-info", "nvidia-cudnn-cu12==9.1.0.70"),
        ("nvidia_cublas-13.1.0.3.dist-info", "nvidia-cublas==13.1.0.3"),
        ("numpy-2.4.6.dist-info", ""),
        ("keras-3.1.dist-info", ""),
        ("nvidia_ml_py-13.590.48.dist-info", ""),
        ("torchmetrics-1.0.dist-info", ""),
        ("torch-unknown.dist-info", ""),  # pip would refuse every installation because of this line
        ("~orch-2.13.0.dist-info", ""),
    ],
)
def test_packages_that_are_built_for_devices_are_held_as_they_are(tmp_path: Path, folder: str, line: str) -> None:
    printed, held = run_step(tmp_path, (folder,))
    file = tmp_path / "held.txt"
    assert held == (f"# \n{line}\n" if line else "")
    assert printed.endswith(f"\n{file}|{file}|" if line else "none|none|")
    assert printed.startswith("riseml: the install steps keep") == bool(line)


def test_the_log_names_what_is_held_in_one_line_and_once(tmp_path: Path) -> None:
    brought = ("torch-2.6.0.dist-info", "triton-3.2.0.dist-info", "nvidia_nccl_cu12-2.21.5.dist-info")
    printed, _ = run_step(tmp_path, (*brought, "nvidia_cublas_cu12-12.4.5.8.dist-info"))
    named = "torch 2.6.0, triton 3.2.0, 2 packages of NVIDIA"
    assert printed.splitlines()[0] == f"riseml: the install steps keep what the environment brought: {named}"
    printed, held = run_step(tmp_path, ("torch-99.dist-info",))
    assert printed == f"{tmp_path}/held.txt|{tmp_path}/held.txt|"
    assert "torch==2.6.0\n" in held, "what a step installs itself is not held"


@pytest.mark.parametrize("place", ["variable", "file"])
def test_other_constraints_apply_beside_it_and_a_space_in_the_path_is_no_end(tmp_path: Path, place: str) -> None:
    folder, settings = tmp_path / "a b", tmp_path / "pip.conf"
    folder.mkdir()
    settings.write_text("[global]\nconstraint =\n    /etc/own.txt\n    /etc/more.txt\n")
    own = {"PIP_CONSTRAINT": "/etc/own.txt /etc/more.txt"} if place == "variable" else {}
    own["PIP_CONFIG_FILE"] = str(settings) if place == "file" else os.devnull
    printed, _ = run_step(folder, ("torch-2.6.0.dist-info",), **own)
    url = f"file://{tmp_path}/a%20b/held.txt"
    assert printed.splitlines()[1] == f"/etc/own.txt /etc/more.txt {url}|{url}|"


@pytest.mark.parametrize("writable", [True, False])
def test_a_step_runs_without_python_or_a_place_for_the_file(tmp_path: Path, *, writable: bool) -> None:
    held = tmp_path / "held.txt" if writable else tmp_path / "gone" / "held.txt"
    command = hold_packages(("/bin/sh", "-ec", "echo $1; exit 3", "x", "it's here"), str(held))
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(command, env={"PATH": str(empty)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "it's here\n", "")
    assert held.exists() == writable
    assert os.listdir(empty) == []
