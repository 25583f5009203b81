"""Packages of Python that a test makes: each is a wheel with a name, a version and what it requires, and no code."""

from __future__ import annotations

import shlex

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
