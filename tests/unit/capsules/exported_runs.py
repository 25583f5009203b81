"""Experiments of capsules as runs to export, and the files of an export."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from riseml import wire
from riseml.capsules.exported_run import ExportedFile, ExportedRun, make_run
from riseml.spec.config.types import Shell
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.planning.test_capsule import capsule_of

CONFIG = "project: toaster\ntrain: {image: base, env: {MODE: fast, TOKEN: x}, run: 'true'}\n"
LINES = """\
words=(a b); [[ ${#words[@]} == 2 ]] && echo "$RISEML_JOB $WORKER_INDEX {{worker_hosts}}" > {{output_dir}}/$RISEML_JOB
ls {{data_dir}}"""


def add_environment(folder: Path) -> None:
    (folder / "venv" / "bin").mkdir(parents=True)
    (folder / "venv" / "bin" / "activate").write_text("")
    (folder / "venv" / ".complete").write_text("")


def run_of(capsule: wire.Capsule, config: str = "") -> ExportedRun:
    return make_run(capsule, config, f"{os.getuid()}:{os.getgid()}", has_code=False)


def small_run(*jobs: str, framework: str = "tensorflow") -> ExportedRun:
    plan = make_plan(*jobs)
    lines = tuple(
        replace(job, run=("sleep 600",) if job.name == "ps.1" else (LINES,), shell=Shell.AUTO) for job in plan.jobs
    )
    return run_of(capsule_of(make_experiment(4, replace(plan, jobs=lines, framework=framework))))


def read(files: Iterable[tuple[str, ExportedFile]], name: str) -> Any:
    return yaml.safe_load(dict(files)[name].text)


def write(files: Iterable[tuple[str, ExportedFile]], folder: Path) -> Path:
    for name, file in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
        path.chmod(0o755 if file.executable else 0o644)
    return folder
