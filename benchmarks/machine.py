"""This machine: its facts for the JSON, and the environment variables of every measured process."""

from __future__ import annotations

import compileall
import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import riseml
from benchmarks.common import print_progress
from benchmarks.engine import BenchEngine

_ODD_PYTHON = re.compile(r"PYTHON(?!PATH$|HOME$)")


def make_environ(**more: str) -> dict[str, str]:
    """Return the environment of every measured process, riseml's and the peers', without settings of Python and riseml.

    With PYTHONDONTWRITEBYTECODE every command would compile its modules again, and with PYTHONUNBUFFERED every write
    would be a system call.
    """
    environ = {name: value for name, value in os.environ.items() if not _ODD_PYTHON.match(name)}
    return {name: value for name, value in environ.items() if not name.startswith("RISEML_")} | more


def compile_bytecode() -> None:
    """Compile changed modules to bytecode, as the installation of a package does."""
    print_progress("compiling bytecode")
    folders = {Path(riseml.__file__).parent, *(Path(path) for path in sys.path if path.endswith("site-packages"))}
    for folder in sorted(folders):
        compileall.compile_dir(str(folder), quiet=2, workers=0)


def collect_facts(engine: BenchEngine) -> dict[str, Any]:
    """Return the facts that the figures depend on, without the names of the machine and its folders."""
    version = engine.api.version()
    info = engine.api.info()
    return {
        "at": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds"),
        "cpus": os.cpu_count(),
        "cpu": _cpu(),
        "memory_mib": info["MemTotal"] // 2**20,
        "kernel": platform.release(),
        "system": info["OperatingSystem"],
        "python": platform.python_version(),
        "docker": {"engine": version["Version"], "api": version["ApiVersion"], "storage": info["Driver"]},
        "cgroup": info.get("CgroupVersion", ""),
        "load_before": os.getloadavg()[0],
        "riseml": riseml.__version__,
        "commit": _commit(),
        "packages": {name: metadata.version(name) for name in ("docker", "httpx", "typer", "fastapi", "sqlalchemy")},
    }


def _cpu() -> str:
    match = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else platform.machine()


def _commit() -> str:
    folder = Path(__file__).parent
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=folder, capture_output=True, text=True, check=False
    )
    return described.stdout.strip()
