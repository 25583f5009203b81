"""The job `tensorboard`, which TensorFlow's jobs have with and without Horovod."""

from __future__ import annotations

from riseml.frameworks.base import Role
from riseml.names import JobName
from riseml.spec.config.types import Resources
from riseml.states import Part

TENSORBOARD = JobName("tensorboard")
_PORT = 6006
_RESOURCES = Resources(cpus=0.1, mem=512, gpus=0)


def make_tensorboard_role() -> Role:
    """Return a job that shows the output folder of its experiment."""
    place = f'--host "${{RISEML_HOST:-0.0.0.0}}" --port "${{RISEML_PORT:-{_PORT}}}"'
    return Role(TENSORBOARD, Part.WATCHES, _RESOURCES, run=(f'exec tensorboard --logdir "$OUTPUT_DIR" {place}',))
