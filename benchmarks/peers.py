"""What a user would pick instead, made ready: the peers' own environment, and whether each can be had."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from benchmarks.common import say
from benchmarks.machine import environ

_DEADLINE = 300.0


def cache() -> Path:
    """Below the folder that the tests cache in, too; never in .venv."""
    root = os.environ.get("RISEML_TEST_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(root) if root else Path(base) / "riseml") / "bench"


def make_environment() -> Path | None:
    """The Python of the peers' own environment, made once with what pyproject's group `bench` names; None: it could
    not be made (no package index in reach).
    """
    folder = cache() / "venv"
    python, ready = folder / "bin" / "python", folder / "ready"
    wanted = "\n".join(_group())
    if ready.exists() and ready.read_text(encoding="utf-8") == wanted:
        return python
    say(f"making the peers' environment ({', '.join(_group())})")
    uv = str(Path(sys.executable).parent / "uv")
    make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
    fill = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *_group()]
    try:
        for command in (make, fill):
            subprocess.run(command, check=True, timeout=_DEADLINE, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        say(f"the peers' environment could not be made: {error}")
        return None
    ready.write_text(wanted, encoding="utf-8")
    return python


def torchx_version() -> str:
    """`0.7.0`, as pyproject pins it."""
    return next(name.partition("==")[2] for name in _group() if name.startswith("torchx"))


def _group() -> list[str]:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["dependency-groups"]["bench"])


def make_compose() -> None:
    """Debian's docker-compose."""
    if not is_there("docker-compose"):
        install("docker-compose")


def install(package: str) -> None:
    """A Debian package, when this is Debian and we are root; what is missing afterwards is noted in the report."""
    if os.geteuid() != 0 or not is_there("apt-get"):
        return
    say(f"installing {package} with apt-get")
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    settings = environ(DEBIAN_FRONTEND="noninteractive")
    if subprocess.run(command, env=settings, capture_output=True, check=False).returncode != 0:
        subprocess.run(["apt-get", "update", "-qq"], env=settings, capture_output=True, check=False)
        subprocess.run(command, env=settings, capture_output=True, check=False)


def compose_version() -> str | None:
    """`1.29.2`; None when there is no docker-compose."""
    if not shutil.which("docker-compose"):
        return None
    asked = subprocess.run(["docker-compose", "version", "--short"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or None


def is_there(command: str) -> bool:
    return shutil.which(command) is not None
