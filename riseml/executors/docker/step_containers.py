"""One install step as a container: as confined as a job, and what the image becomes when it has ended. Pure.

A step may be root in its image: package managers change owners and modes, and become other users. It has the
capabilities for that alone (`CAPABILITIES`): it can make no device, no raw socket and no mount, and no program of it
gets more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from riseml.base.names import STEP_REPOSITORY
from riseml.base.records import dataclass
from riseml.executors.build_limits import PROCESSES
from riseml.executors.docker import labels
from riseml.executors.docker.project_archive import WORKING_FOLDER
from riseml.job_programs.held_packages import IMAGE_FILE
from riseml.model import Image
from riseml.planning.image import make_list_command, make_step_commands

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID")
"""What dpkg, apt-get and pip need as root: owners, modes and setgid bits of files, and to become another user."""

OUT_OF_MEMORY = 219
"""The exit code of a step whose processes the kernel has killed because they used too much memory."""

_OOM_SCORE = 500  # as of jobs
_LOG_SIZE = "1g"
_MIB = 2**20

# An engine learns of such a kill by an event of the kernel. On a busy machine the event comes after the end of the
# container or, for a step that has just begun, never (seen with Engine 20.10 and 26.1). The kernel's own counter
# is certain, and goes away with the container: so the shell that has run the step reads it. Both versions of cgroups
# have one.
_RUN_AND_COUNT = f"""\
"$@"
code=$?
[ "$code" != 0 ] || exit 0
[ "$code" != {OUT_OF_MEMORY} ] || code=1
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
[ -r "$file" ] || continue
while read -r name count; do
[ "$name" != oom_kill ] || [ "$count" = 0 ] || code={OUT_OF_MEMORY}
done <"$file"
done
exit "$code"
"""


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One step of an environment."""

    number: int  # number of the install step, from 1; 0: the step that lists the packages
    line: str  # as the user wrote it; empty: the step that lists the packages
    command: tuple[str, ...]
    digest: str  # digest of everything that its image depends on

    @property
    def image(self) -> str:
        """The name of the image that the step leaves."""
        return f"{STEP_REPOSITORY}:{self.digest[:32]}"


def list_steps(image: Image, base: str, files: str) -> Iterator[BuildStep]:
    """Yield the steps of an environment in their order. Equal beginnings of two environments have equal digests.

    Args:
        image: the environment.
        base: id of the base image.
        files: digest of the project's files that the steps may read.
    """
    digest = hashlib.sha256(" ".join((base, files, *((image.holder,) if image.holder else ()))).encode())
    rows = list(zip(image.install, make_step_commands(image, IMAGE_FILE), strict=True))
    for number, (line, command) in enumerate([*rows, ("", make_list_command())], 1):
        digest.update(repr(command).encode("utf-8", "surrogateescape"))
        yield BuildStep(number if line else 0, line, command, digest.hexdigest())


def step_request(
    step: BuildStep, below: str, server: str, config: Mapping[str, Any], host_config: dict[str, Any]
) -> dict[str, Any]:
    """Return the body of `POST /containers/create` (Docker Engine API 1.41).

    Args:
        step: what runs.
        below: the image in which it runs.
        server: id of the server.
        config: the configuration of that image.
        host_config: see `host_config`.
    """
    request: dict[str, Any] = {
        "Image": below,
        "Entrypoint": [],
        "Cmd": ["/bin/sh", "-c", _RUN_AND_COUNT, "riseml", *step.command],
        "WorkingDir": f"/{WORKING_FOLDER}",
        "Labels": {labels.BUILD_SERVER: server, labels.STEP: step.digest},
        "HostConfig": host_config,
    }
    if config.get("Healthcheck"):
        request["Healthcheck"] = {"Test": ["NONE"]}
    return request


def make_host_config(mem: int, network: str) -> dict[str, Any]:
    """Return how a step is confined.

    Args:
        mem: MiB that it may use.
        network: its name, or a mode of the engine.
    """
    return {
        "CapDrop": ["ALL"],
        "CapAdd": list(CAPABILITIES),
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "PidsLimit": PROCESSES,
        "Memory": mem * _MIB,
        "MemorySwap": mem * _MIB,
        "RestartPolicy": {"Name": "no"},
        "AutoRemove": False,
        "OomScoreAdj": _OOM_SCORE,
        "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        "LogConfig": {"Type": "json-file", "Config": {"max-size": _LOG_SIZE, "max-file": "2"}},
        "NetworkMode": network,
    }


def image_config(step: BuildStep, below: Mapping[str, Any], environment: str, server: str) -> dict[str, Any]:
    """Return the configuration of the image that a step leaves: that of the image below, with the working folder.

    The engine fills what is missing from the container, whose command is the step. So an image without a command of its
    own gets a shell.

    Args:
        step: the step that has ended.
        below: configuration of the image below.
        environment: digest of the environment that the image holds; empty: it holds none yet.
        server: id of the server that makes it.
    """
    marks = {**(below.get("Labels") or {}), labels.STEP: step.digest, labels.STEP_SERVER: server}
    marks[labels.BUILD_SERVER] = ""
    config = {**below, "WorkingDir": f"/{WORKING_FOLDER}"}
    config["Labels"] = {**marks, labels.ENVIRONMENT: environment} if environment else marks
    if not config.get("Entrypoint") and not config.get("Cmd"):
        config["Cmd"] = ["/bin/sh"]
    for name in ("Hostname", "Domainname", "Image"):
        config.pop(name, None)
    return config
