"""The labels by which riseml finds its objects on a Docker Engine. A container is matched without the store."""

from __future__ import annotations

from collections.abc import Mapping

from riseml.base.names import JobName
from riseml.model import JobKey

SERVER = "io.riseml.server"  # id of the server that made the object
EXPERIMENT = "io.riseml.experiment"  # number of the experiment in the store
JOB = "io.riseml.job"  # `worker.1`
ATTEMPT = "io.riseml.attempt"  # counts from 1
MEM = "io.riseml.mem"  # MiB that a job was promised
TITLE = "io.riseml.title"  # `paul.4.worker.1`, for people
ENVIRONMENT = "io.riseml.environment"  # digest of the environment that an image holds
STEP = "io.riseml.step"  # digest of the install step that a container runs, or that an image holds
STEP_SERVER = "io.riseml.step.server"  # id of the server that made the image of a step
# id of the server that makes an environment in a container or a network; empty in images: containers inherit labels
BUILD_SERVER = "io.riseml.build.server"
CODE = "io.riseml.code"  # identity of the project's state that an image holds
CODE_SNAPSHOT = "io.riseml.code.snapshot"  # its digest
CODE_BASE = "io.riseml.code.base"  # id of the environment below it
CODE_OWNER = "io.riseml.code.owner"  # owner of its files: `1000:1000`
CODE_DEPTH = "io.riseml.code.depth"  # how many earlier states lie between it and the environment
CODE_SIZE = "io.riseml.code.size"  # bytes of the contents that were written for it
DATA = "io.riseml.data"  # key of the set of data that a volume holds
# what a container does for the server itself, beside jobs; empty in images, as `BUILD_SERVER`
HELPER = "io.riseml.helper"
HOST = "io.riseml.host"  # the pool's name of the host that made a network across hosts


def label_filter(key: str, value: str) -> str:
    """Return a label with its value as the engine's filters expect it."""
    return f"{key}={value}"


def job_labels(key: JobKey, server: str, title: str) -> dict[str, str]:
    """Return the labels of a job's container."""
    return {
        SERVER: server,
        EXPERIMENT: str(key.experiment),
        JOB: key.job,
        ATTEMPT: str(key.attempt),
        TITLE: title,
    }


def parse_job_key(labels: Mapping[str, str]) -> JobKey | None:
    """Return the job that a container's labels name; None: they name no job."""
    try:
        return JobKey(int(labels[EXPERIMENT]), JobName(labels[JOB]), int(labels[ATTEMPT]))
    except (KeyError, ValueError):
        return None


def is_helper(labels: Mapping[str, str]) -> bool:
    """Return True for the labels of a container that works for the server itself, and for no job."""
    return bool(labels.get(HELPER)) and JOB not in labels


def parse_mem(labels: Mapping[str, str]) -> int:
    """Return the MiB that a job was promised; 0: the labels of an earlier version do not say."""
    text = labels.get(MEM, "")
    return int(text) if text.isdecimal() else 0


def parse_experiment(labels: Mapping[str, str]) -> int | None:
    """Return the experiment that labels name; None: they name none."""
    text = labels.get(EXPERIMENT, "")
    return int(text) if text.isdecimal() else None
