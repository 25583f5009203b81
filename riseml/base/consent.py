"""What the user of a home has agreed to. One file of the home, which only this user may read or write, holds it.

The command line asks the user and writes the answers. The server reads them, and refuses jobs without an answer.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from riseml.base.errors import Refused
from riseml.base.records import dataclass

FILE = "consent.json"
"""The name of the file in RISEML_HOME."""

_HINT = (
    "choose that with `--executor process` or RISEML_EXECUTOR=process, or start a Docker Engine;"
    " `riseml train` on a terminal asks, and remembers a yes"
)


@dataclass(frozen=True, slots=True)
class PassedVariable:
    """A variable of the caller that a project passes on to its jobs. Its value is never remembered."""

    folder: str  # the project's folder, absolute and without links
    project: str  # the name in its riseml.yml
    name: str  # name of the variable


@dataclass(frozen=True, slots=True)
class Consent:
    """What the user has agreed to."""

    processes: bool = False  # without a Docker Engine, jobs run as processes of this machine
    variables: frozenset[PassedVariable] = frozenset()


def read_consent(home: Path) -> Consent:
    """Return what the user of this home has agreed to.

    A file that another user could have written, or that is not JSON of riseml, counts as no consent.
    """
    try:
        file = os.open(home / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return Consent()
    try:
        status = os.fstat(file)
        if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) & 0o022:
            return Consent()
        with open(file, encoding="utf-8", errors="replace", closefd=False) as opened:
            return _parse(opened.read())
    finally:
        os.close(file)


def record_processes(home: Path) -> None:
    """Remember that jobs may run as processes of this machine.

    Raises:
        Refused: the home cannot be written.
    """
    _write_file(home, replace(read_consent(home), processes=True))


def record_variables(home: Path, variables: Iterable[PassedVariable]) -> None:
    """Remember that these variables may be passed on.

    Raises:
        Refused: the home cannot be written.
    """
    before = read_consent(home)
    _write_file(home, replace(before, variables=before.variables | frozenset(variables)))


def make_process_refusal(missing_engine: str) -> Refused:
    """Return the error for jobs that would run as processes although the user has not chosen that.

    Args:
        missing_engine: why no engine answers; empty when the server uses processes for another reason.
    """
    return Refused(f"{describe_processes(missing_engine)}: jobs would run as you, with your files", _HINT)


def describe_processes(missing_engine: str) -> str:
    """Return why jobs would run as processes."""
    if missing_engine:
        return f"no Docker Engine answers here ({missing_engine})"
    return "the riseml server runs jobs as processes of this machine, without Docker"


def _parse(text: str) -> Consent:
    try:
        document: Any = json.loads(text)
        rows = [
            PassedVariable(str(row["folder"]), str(row["project"]), str(row["name"])) for row in document["variables"]
        ]
        return Consent(document["processes"] is True, frozenset(rows))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Consent()


def _write_file(home: Path, consent: Consent) -> None:
    """Replace the whole file. When two commands write at the same time, one answer may be lost, and riseml asks
    again."""
    rows = sorted(
        (
            {"folder": variable.folder, "project": variable.project, "name": variable.name}
            for variable in consent.variables
        ),
        key=str,
    )
    text = json.dumps({"processes": consent.processes, "variables": rows}, indent=2) + "\n"
    fresh = home / f"{FILE}.{os.getpid()}"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(text)
        fresh.replace(home / FILE)
    except OSError as error:
        message = f"the answer cannot be kept in {home / FILE}: {error.strerror}"
        raise Refused(message, "make the home writable") from None
