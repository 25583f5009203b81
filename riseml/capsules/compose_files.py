"""A run as files for docker compose: a service for each job, and a script that waits for those that decide."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from riseml.capsules.exported_run import (
    EXIT_ON_SIGNALS,
    ExportedFile,
    ExportedJob,
    ExportedRun,
    describe_run,
    fill_peers,
    name_dockerfile,
    write_dockerfiles,
)
from riseml.capsules.exported_yaml import write_yaml
from riseml.job_programs.group_shell import wait_for_group

_RUN = """\
#!/bin/sh
# Builds the images, runs all jobs, and ends them when those that decide have ended: the exit code is theirs.
set -eu
cd "$(dirname "$0")"
compose="docker compose"
docker compose version >/dev/null 2>&1 || compose=docker-compose
export COMPOSE_PROJECT_NAME={title}
mkdir -p output
$compose build
trap '$compose down --timeout 10' EXIT
{signals}
$compose up -d
$compose logs -f --no-color &
code=0
for job in {deciders}; do
    container=$($compose ps -a -q "$job")
    docker wait "$container" >/dev/null & # a signal ends the wait of the shell, and no wait for this command
    wait "$!" || :
    ended=$(docker inspect --format "{{{{.State.ExitCode}}}}" "$container")
    [ "$ended" -eq 0 ] || code=$ended
done
exit "$code"
"""


OWN_DATA = "./data"
"""The folder with the data, in the folder of compose.yaml; used when the folder of the original run is not used."""

_ODD = re.compile(r"[:$}\x00-\x1f\x7f]")  # characters that compose reads as more than a path


def choose_data(run: ExportedRun) -> str:
    """Return the folder that the containers see as their data, if RISEML_DATA names none.

    Any person may have written a capsule in a folder, and could name any folder of the user there.
    """
    return OWN_DATA if run.is_foreign or _ODD.search(run.data) else run.data


def write_compose(run: ExportedRun) -> Iterator[tuple[str, ExportedFile]]:
    """Yield compose.yaml, the Dockerfiles and run.sh."""
    services = {job.hostname: _make_service(run, job) for job in run.jobs}
    text = write_yaml({"services": services})
    yield "compose.yaml", ExportedFile(f"# {describe_run(run)}: ./run.sh\n{text}")
    yield from write_dockerfiles(run)
    deciders = " ".join(job.hostname for job in run.deciders)
    yield (
        "run.sh",
        ExportedFile(_RUN.format(title=run.title, signals=EXIT_ON_SIGNALS, deciders=deciders), executable=True),
    )


def _make_service(run: ExportedRun, job: ExportedJob) -> dict[str, Any]:
    record = job.record
    service: dict[str, Any] = {
        "build": {"context": ".", "dockerfile": name_dockerfile(record["environment"])},
        "hostname": job.hostname,
        "entrypoint": [],
        "command": [_escape(word) for word in wait_for_group(job.command)],
        "environment": {name: _escape(value) for name, value in job.variables.items()} | dict.fromkeys(job.missing),
        "working_dir": "/code",
        "user": run.owner,
        "volumes": ["./output:/output", f"${{RISEML_DATA:-{choose_data(run)}}}:/data:ro"],
        "init": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "shm_size": f"{record['shm_mib']}m",
        "mem_reservation": f"{record['mem_mib']}m",
        "restart": "no",
    }
    if record["mem_limit_mib"] is not None:
        service["mem_limit"] = f"{record['mem_limit_mib']}m"
    if record["cpus_limit"] is not None:
        service["cpus"] = record["cpus_limit"]
    if record["gpus"]:
        devices = [{"driver": "nvidia", "count": record["gpus"], "capabilities": ["gpu"]}]
        service["deploy"] = {"resources": {"reservations": {"devices": devices}}}
    return service


def _escape(text: str) -> str:
    """Return a text with the names of the services, and with the dollar signs that compose would read."""
    return fill_peers(text, lambda hostname: hostname).replace("$", "$$")
