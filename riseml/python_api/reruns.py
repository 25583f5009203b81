"""Run an experiment again, as the command `rerun` does."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import closing

from riseml.python_api.parameter_texts import list_pairs
from riseml.python_api.program import Program, Tell


class _ToldText(io.StringIO):
    """A stream that tells each line, for the messages of a command.

    Args:
        tell: takes a line.
    """

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell

    def write(self, text: str) -> int:
        for line in text.splitlines():
            self._tell(line)
        return len(text)


def start_rerun(
    program: Program,
    identity: str,
    values: tuple[Mapping[str, object] | None, Mapping[str, object] | None],
    allow_env: Sequence[str],
    message: str | None,
) -> str:
    """Start the run and return its ID. `values` are its parameters and settings.

    Raises:
        Refused: a part of the run is no longer available, or a variable was not allowed.
    """
    from riseml.cli.commands.rerun import RerunRequest, begin_run
    from riseml.cli.commands.train import read_message
    from riseml.cli.context import CommandContext
    from riseml.cli.output.printer import Printer

    printer = Printer(io.StringIO(), _ToldText(program.tell))
    command = CommandContext(printer, program.environ, program.folder, wait=program.wait)
    parameters, settings = values
    request = RerunRequest(
        list_pairs(parameters, "parameters"),
        list_pairs(settings, "settings"),
        list(allow_env),
        force=False,
        note=None if message is None else read_message(message),
    )
    with closing(begin_run(command, identity, request)) as begun:
        return begun.experiment["id"]
