"""Run an experiment again, as the command `rerun` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from riseml.python_api.notes import read_allowed, read_message
from riseml.python_api.parameter_texts import list_pairs
from riseml.python_api.program import Program


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
    from riseml.submission.rerunning import RerunRequest, begin_run

    parameters, settings = values
    request = RerunRequest(
        list_pairs(parameters, "parameters"),
        list_pairs(settings, "settings"),
        read_allowed(allow_env),
        force=False,
        note=read_message(message),
    )
    with closing(begin_run(program, identity, request)) as begun:
        return begun.experiment["id"]
