"""The peers: tools that a user could use instead of riseml, their environment, and whether they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from benchmarks.common import print_progress
from benchmarks.machine import make_environ

_DEADLINE = 300.0


def find_cache_folder() -> Path:
    """Return the folder for the environments of the peers: in the cache of the tests, never in .venv."""
    root = os.environ.get("RISEML_TEST_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(root) if root else Path(base) / "riseml") / "bench"


def make_environment() -> Path | None:
    """Return the Python of the peers' environment. The first call creates it, from the group `bench` of pyproject.toml.

    Returns:
        None when it cannot be created, for example because no package index answers.
    """
    folder = find_cache_folder() / "venv"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    requirements = "\n".join(_group())
    if ready.exists() and ready.read_text(encoding="utf-8") == requirements:
        return python
    print_progress(f"creating the peers' environment ({', '.join(_group())})")
    uv = str(Path(sys.executable).parent / "uv")
    make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
    fill = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *_group()]
    try:
        for command in (make, fill):
            subprocess.run(command, check=True, timeout=_DEADLINE, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        print_progress(f"the peers' environment could not be created: {error}")
        return None
    ready.write_text(requirements, encoding="utf-8")
    return python


def torchx_version() -> str:
    """Return the version that pyproject.toml pins, such as `0.7.0`."""
    return next(name.partition("==")[2] for name in _group() if name.startswith("torchx"))


def _group() -> list[str]:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["dependency-groups"]["bench"])


def make_compose() -> None:
    """Install Debian's docker-compose where it is missing."""
    if not is_installed("docker-compose"):
        install_package("docker-compose")


def install_package(package: str) -> None:
    """Install a Debian package, if this is Debian and the user is root. The report names a package that is missing."""
    if os.geteuid() != 0 or not is_installed("apt-get"):
        return
    print_progress(f"installing {package} with apt-get")
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    settings = make_environ(DEBIAN_FRONTEND="noninteractive")
    if subprocess.run(command, env=settings, capture_output=True, check=False).returncode != 0:
        subprocess.run(["apt-get", "update", "-qq"], env=settings, capture_output=True, check=False)
        subprocess.run(command, env=settings, capture_output=True, check=False)


def compose_version() -> str | None:
    """Return the version, such as `1.29.2`, or None without docker-compose."""
    if not shutil.which("docker-compose"):
        return None
    process = subprocess.run(["docker-compose", "version", "--short"], capture_output=True, text=True, check=False)
    return process.stdout.strip() or None


def is_installed(command: str) -> bool:
    return shutil.which(command) is not None


def make_tool(command: str, package: str) -> str | None:
    """Return the path of a command from a Python package. The first call installs it in an environment of its own.

    Returns:
        None when it cannot be installed.
    """
    folder = find_cache_folder() / package
    program = folder / "bin" / command
    ready = folder / "ready"
    if ready.exists():
        return str(program)
    print_progress(f"installing {package}")
    uv = str(Path(sys.executable).parent / "uv")
    make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
    fill = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(folder / "bin" / "python"), package]
    try:
        for words in (make, fill):
            subprocess.run(words, check=True, timeout=_DEADLINE, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        print_progress(f"{package} could not be installed: {error}")
        return None
    ready.touch()
    return str(program)
