"""The job `tensorboard`, which TensorFlow's jobs have with and without Horovod."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from riseml.frameworks.base import Role
from riseml.names import JobName
from riseml.spec.config.types import Resources, TensorBoard, Train
from riseml.states import Part

if TYPE_CHECKING:
    from riseml.model import Environment

TENSORBOARD = JobName("tensorboard")
LOGDIR_OPTION = "logdir"
"""The option of a plan that says where TensorBoard's files are, when they are not directly in OUTPUT_DIR."""

_PORT = 6006
_RESOURCES = Resources(cpus=0.1, mem=512, gpus=0)


def make_tensorboard_role(board: TensorBoard) -> Role:
    """Return a job that shows the output folder of its experiment, or what `logdir` names."""
    place = f'--host "${{RISEML_HOST:-0.0.0.0}}" --port "${{RISEML_PORT:-{_PORT}}}"'
    run = (f"exec tensorboard --logdir {_quote_logdir(board.logdir)} {place}",)
    return Role(TENSORBOARD, Part.WATCHES, _RESOURCES, run=run)


def tensorboard_options(board: TensorBoard | None) -> Environment:
    """Return what a plan keeps of it for the TensorBoard of an ended experiment."""
    return ((LOGDIR_OPTION, board.logdir),) if board is not None and board.logdir else ()


def tensorboard_steps(train: Train) -> tuple[str, ...]:
    """Return the install step of a TensorBoard whose version the file names."""
    board = None if train.tensorflow is None else train.tensorflow.tensorboard
    return () if board is None or board.version is None else (f"python3 -m pip install tensorboard=={board.version}",)


def is_outside(logdir: str) -> bool:
    """Return True when a `logdir` is not below OUTPUT_DIR."""
    return logdir.startswith("/") or "://" in logdir


def _quote_logdir(logdir: str) -> str:
    if is_outside(logdir):
        return shlex.quote(logdir)
    return f'"$OUTPUT_DIR"/{shlex.quote(logdir)}' if logdir else '"$OUTPUT_DIR"'
