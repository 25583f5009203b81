"""The job `tensorboard`, which TensorFlow's jobs have with and without Horovod."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from riseml.base.names import JobName
from riseml.base.states import JobDuty
from riseml.frameworks.base import FrameworkJob
from riseml.job_programs import read_program
from riseml.spec.config.types import Resources, Shell, TensorBoard, Train

if TYPE_CHECKING:
    from riseml.model import Environment

TENSORBOARD = JobName("tensorboard")
LOGDIR_OPTION = "logdir"
"""The option of a plan that says where TensorBoard's files are, when they are not directly in OUTPUT_DIR."""

STORE_PACKAGE = "boto3"
"""The package with which TensorBoard reads s3://."""

TENSORBOARD_PORT = 6006
"""Where it listens, unless riseml has chosen another port."""

_IMPORT = "python3 -c 'import sys; sys.path = [one for one in sys.path if one]; import {0}' 2>/dev/null"
_RESOURCES = Resources(cpus=0.1, mem=512, gpus=0)


def make_tensorboard_role(board: TensorBoard) -> FrameworkJob:
    """Return a job that shows the output folder of its experiment, or what `logdir` names."""
    place = f'--host "${{RISEML_HOST:-0.0.0.0}}" --port "${{RISEML_PORT:-{TENSORBOARD_PORT}}}"'
    logdir = f"--logdir {_quote_logdir(board.logdir)}"
    program = f"{start_on_store()} ''" if is_in_store(board.logdir) else "tensorboard"
    return FrameworkJob(
        TENSORBOARD, JobDuty.WATCHES, _RESOURCES, run=(f"exec {program} {logdir} {place}",), shell=Shell.SH
    )


def tensorboard_options(board: TensorBoard | None) -> Environment:
    """Return the options of the plan from which a later TensorBoard of the ended experiment is made."""
    return ((LOGDIR_OPTION, board.logdir),) if board is not None and board.logdir else ()


def tensorboard_steps(train: Train) -> tuple[str, ...]:
    """Return the install steps of TensorBoard, if the file names a version, and of the package that reads its logs."""
    board = None if train.tensorflow is None else train.tensorflow.tensorboard
    if board is None:
        return ()
    version = () if board.version is None else (f"python3 -m pip install tensorboard=={board.version}",)
    return (*version, make_package_step(STORE_PACKAGE)) if is_in_store(board.logdir) else version


def is_outside(logdir: str) -> bool:
    """Return True when a `logdir` is not below OUTPUT_DIR."""
    return logdir.startswith("/") or "://" in logdir


def is_in_store(logdir: str) -> bool:
    """Return True when a `logdir` is in S3."""
    return logdir.startswith("s3://")


def start_on_store(urls: Sequence[str] = (), names: str = "", level: str = "note") -> str:
    """Return the command of a TensorBoard that reads S3, with the program `store_tensorboard`; its next argument is
    `found`, and TensorBoard's own follow.

    Args:
        urls: addresses of which one must have logs.
        names: of the experiments that have their logs there.
        level: with `error`, TensorBoard ends when there are no logs.
    """
    order = json.dumps({"urls": list(urls), "names": names, "level": level})
    return f"python3 -c {shlex.quote(read_program('store_tensorboard'))} {shlex.quote(order)}"


def check_import(packages: str) -> str:
    """Return the shell line that fails unless these Python packages are installed: `tensorboard, boto3`.

    It does not import from the working directory: a module of the project may have the same name.
    """
    return _IMPORT.format(packages)


def make_package_step(package: str) -> str:
    """Return an install step for a Python package, which does nothing when it is there."""
    return f"{check_import(package)} || python3 -m pip install {package}"


def _quote_logdir(logdir: str) -> str:
    if is_outside(logdir):
        return shlex.quote(logdir)
    return f'"$OUTPUT_DIR"/{shlex.quote(logdir)}' if logdir else '"$OUTPUT_DIR"'
