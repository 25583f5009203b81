"""Packages of Python for tests: wheels that a test makes, without code, and real ones that this machine fetches."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_PROGRAM = r"""
import sys, zipfile
name, version, *requires = sys.argv[1:]
file = name.replace("-", "_") + "-" + version
metadata = ["Metadata-Version: 2.1", "Name: " + name, "Version: " + version]
metadata += ["Requires-Dist: " + package for package in requires]
with zipfile.ZipFile(file + "-py3-none-any.whl", "w") as wheel:
    wheel.writestr(file + ".dist-info/METADATA", "\n".join(metadata) + "\n")
    wheel.writestr(file + ".dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    names = [*wheel.namelist(), file + ".dist-info/RECORD"]
    wheel.writestr(names[-1], "".join(written + ",,\n" for written in names))
"""


def make_wheel(name: str, version: str, *requires: str) -> str:
    """Return the shell line that makes a wheel in the working folder; the environment needs only Python."""
    return shlex.join(["python", "-c", _PROGRAM, name, version, *requires])


def fetch_wheels(folder: Path, *packages: str) -> None:
    """Fetch wheels of packages, `tabulate==0.9.0`, into a folder, unless it has them; from where this machine's pip
    gets packages.
    """
    for package in packages:
        name, _, version = package.partition("==")
        if not any(folder.glob(f"{name}-{version}-*.whl")):
            fetch = ("download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder), package)
            subprocess.run([sys.executable, "-m", "pip", *fetch], check=True)


def install_packages(folder: Path, *packages: str) -> None:
    """Install packages and what they need into a folder, unless it is there."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as parent:
        made = Path(parent, "packages")
        install = ("install", "--quiet", "--only-binary=:all:", "--target", str(made), *packages)
        subprocess.run([sys.executable, "-m", "pip", *install], check=True)
        with suppress(OSError):  # another worker was faster
            made.rename(folder)
