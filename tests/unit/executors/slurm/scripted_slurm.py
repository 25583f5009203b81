"""The commands of Slurm as shell scripts that a test writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from riseml.executors.slurm.command_site import ThisMachine


class ScriptedSlurm(ThisMachine):
    """A site whose commands are scripts in a folder. Each notes its words and its input there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def wrap(self, command: Sequence[str]) -> list[str]:
        return ["/bin/sh", str(self._folder / command[0]), *command[1:]]

    def write(self, name: str, script: str) -> None:
        """Let a command be this script."""
        note = f'printf "%s\\n" "$@" >"{self._folder}/{name}.words"; cat >"{self._folder}/{name}.input"\n'
        (self._folder / name).write_text(note + script)

    def read_words(self, name: str) -> list[str]:
        """Return the words of the last call of a command."""
        return (self._folder / f"{name}.words").read_text().splitlines()

    def read_input(self, name: str) -> str:
        """Return the input of the last call of a command."""
        return (self._folder / f"{name}.input").read_text()
