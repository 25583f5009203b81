"""Runs as what another run waits for and reads: the arguments `after` and `inputs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from riseml.base.errors import UsageError
from riseml.python_api.runs import Run
from riseml.submission.predecessors import check_predecessors

if TYPE_CHECKING:
    from riseml.python_api.outputs import RunOutput


class AnyRun(Protocol):
    """A `Run`, or one of a program with asyncio."""

    @property
    def id(self) -> str:
        """Its ID."""

    @property
    def output(self) -> RunOutput:
        """What its jobs have written."""


After = AnyRun | int | str
"""A run, or its ID, name or tag; the text `4:any` accepts any end of 4."""

Input = AnyRun | str
"""A run, whose whole output is read, or the address of a part: `output://4/model`."""


def list_predecessors(after: After | Sequence[After]) -> list[str]:
    """Return what a submission waits for, as texts.

    Raises:
        UsageError: a part is neither a run nor its ID, name or tag.
    """
    parts = after if isinstance(after, Sequence) and not isinstance(after, str) else [after]
    return check_predecessors([_name_run(part) for part in parts], "after")


def list_inputs(inputs: Mapping[str, Input] | None) -> list[tuple[str, str]]:
    """Return the settings that give a submission its inputs.

    Raises:
        UsageError: they are no mapping, or a value is neither a run nor a text.
    """
    if inputs is None:
        return []
    if not isinstance(inputs, Mapping):
        raise UsageError(f"inputs is {type(inputs).__name__}, not a dict", 'write inputs={"model": run}')
    pairs = []
    for name, value in inputs.items():
        run = _find_run(value)
        if run is None and not isinstance(value, str):
            hint = f'write inputs={{"{name}": run}}, or the address of a part: "output://4/model"'
            raise UsageError(f"inputs[{name!r}] is {value!r}, neither a run nor an address", hint)
        pairs.append((f"train.inputs.{name}", str(value) if run is None else run.output.url()))
    return pairs


def _find_run(value: object) -> Run | None:
    run = getattr(value, "run", value)  # of a program with asyncio
    return run if isinstance(run, Run) else None


def _name_run(value: object) -> str:
    run = _find_run(value)
    if run is not None:
        return run.id
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise UsageError(
        f"after has {value!r}, which is neither a run nor the ID of one",
        'write after=run, after=4, or after="4:any" to start however 4 ended',
    )
