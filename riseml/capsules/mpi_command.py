"""The command of an MPIJob's launcher: what mpirun or horovodrun starts, for which framework."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from riseml.base.errors import UsageError
from riseml.base.records import dataclass

_LAUNCHERS = frozenset({"mpirun", "mpiexec", "orterun", "horovodrun"})
_ONE_VALUE = re.compile(
    r"-(?:np|n|c|N|npernode|ppn|H|host|hostfile|machinefile|f|bind-to|map-by|rank-by|wdir|wd|x|p)"
    r"|--(?:np|npernode|hosts?|hostfile|machinefile|bind-to|map-by|rank-by|wdir|prefix|tune)"
    r"|--(?:num-proc|(?:min|max)-(?:np|num-proc)|slots(?:-per-host)?|host-discovery-script|ssh-port)"
    r"|--(?:network-interfaces?|start-timeout|output-filename|log-level|config-file|fusion-threshold-mb)"
    r"|--(?:cycle-time-ms|cache-capacity|timeline-filename|reset-limit|elastic-timeout)"
)
"""Options of mpirun and horovodrun that take the next word as their value."""

_TWO_VALUES = frozenset(("-mca", "--mca", "-gmca", "--gmca", "-genv", "-env"))
_PLAIN = re.compile(r"[^;&|<>()`\n]*")  # a script of a shell that is one command
_FRAMEWORKS = {"pytorch": re.compile(r"torch"), "tensorflow": re.compile(r"tensorflow|keras|(?<![a-z])tf[\d_.-]")}


@dataclass(frozen=True, slots=True)
class MpiCommand:
    """What a launcher starts."""

    launcher: str  # mpirun, horovodrun, ...; empty: the command has none
    framework: str  # of riseml
    program: tuple[str, ...]  # the command of each rank; empty: the image has it
    variables: tuple[str, ...]  # that the launcher passes on with a value: `NAME=value`
    options: tuple[str, ...]  # of the launcher, which riseml does not need


def read_mpi_command(words: Sequence[str], image: str) -> MpiCommand:
    """Return what the launcher of an MPIJob starts.

    Args:
        words: its command with all arguments.
        image: the image of the workers.

    Raises:
        UsageError: it is not a training with Horovod, or not one command.
    """
    line = list(words)
    if len(line) == 3 and line[0].rpartition("/")[2] in ("sh", "bash") and re.fullmatch("-[a-z]*c", line[1]):
        if not _PLAIN.fullmatch(line[2].strip()):
            raise UsageError(
                "the launcher of the MPIJob runs a script of several commands, and riseml starts each rank with one",
                "write a riseml.yml with `horovod`: `riseml init --framework pytorch` begins one",
            )
        try:
            line = shlex.split(line[2])
        except ValueError:
            raise UsageError("the launcher of the MPIJob runs a line with an open quote", "correct the file") from None
    options: list[str] = []
    variables: list[str] = []
    launcher = line[0].rpartition("/")[2] if line else ""
    if launcher in _LAUNCHERS:
        line = line[1:]
        while line and line[0].startswith("-"):
            size = 3 if line[0] in _TWO_VALUES else 2 if _ONE_VALUE.fullmatch(line[0]) else 1
            if line[0] == "-x" and "=" in "".join(line[1:2]):
                variables.append(line[1])
            else:
                options += line[:size]
            line = line[size:]
    text = " ".join(line).lower()
    if "horovod" not in f"{text} {image} {' '.join(words)}".lower() and "hvd" not in text:
        raise UsageError(
            "an MPIJob is imported when it trains with Horovod, whose ranks riseml starts itself, without mpirun;"
            " neither its command nor its image names Horovod",
            "when its program calls `hvd.init()`, write a riseml.yml with `horovod` (docs/frameworks.md)",
        )
    return MpiCommand(launcher, _choose_framework(text, image.lower()), tuple(line), tuple(variables), tuple(options))


def _choose_framework(program: str, image: str) -> str:
    """Return the framework that the program names, or else the image; TensorFlow where neither decides."""
    for text in (program, image):
        named = [framework for framework, pattern in _FRAMEWORKS.items() if pattern.search(text)]
        if len(named) == 1:
            return named[0]
    return "tensorflow"
