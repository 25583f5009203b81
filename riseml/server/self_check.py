"""`python -m riseml.server.self_check`: whether this machine has what riseml needs, as JSON. No server runs for it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

from riseml.base.errors import RisemlError
from riseml.base.settings import DOCKER, PROCESS, Settings, read_settings
from riseml.executors.capabilities import Finding, Outcome
from riseml.executors.gpus.nvml import GpuReader
from riseml.executors.kinds import check_local_engine
from riseml.executors.this_machine.requirements import check_this_machine
from riseml.server.hosts.choose_executor import find_missing_engine

_WITHOUT = "`riseml train --executor process` runs jobs without Docker, as you, with your files"


def list_findings(settings: Settings) -> Iterator[Finding]:
    """Yield what is right and wrong here."""
    gpus = [reading.gpu for reading in GpuReader().read_all()]
    models = [f"GPU {gpu.id}: {gpu.name}, driver {gpu.driver}" for gpu in gpus]
    yield from check_this_machine(settings.home, models)
    missing = find_missing_engine(settings)
    if missing:
        outcome = Outcome.FAILED if settings.executor == DOCKER else Outcome.NOTE
        yield Finding("engine", outcome, f"no Docker Engine answers ({missing}): start one, or {_WITHOUT}")
        return
    try:
        yield from check_local_engine(settings, has_gpus=bool(gpus))
    except RisemlError as error:
        hint = f" ({error.hint})" if error.hint else ""
        outcome = Outcome.NOTE if settings.executor == PROCESS else Outcome.FAILED
        yield Finding("engine", outcome, f"{error.message}{hint}; {_WITHOUT}")


def main() -> int:
    """Print every finding; the exit code says only that they are all there."""
    findings = [
        {"topic": finding.topic, "outcome": finding.outcome.value, "message": finding.message}
        for finding in list_findings(read_settings(os.environ))
    ]
    print(json.dumps(findings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
