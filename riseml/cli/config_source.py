"""The riseml.yml of a command: its text, its problems, and a description of it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.errors import Conflict, Refused, RisemlError
from riseml.cli.output.text import count_noun, format_bytes, format_parameters

if TYPE_CHECKING:
    from riseml.spec.config.types import Parameter, Spec, Train

_MOST_TOPOLOGIES = 30  # that `validate` lists


def check_absent(folder: Path, name: str) -> None:
    """Refuse a file that is there already.

    Raises:
        Conflict: it is there.
    """
    if os.path.lexists(folder / name):
        raise _make_conflict(name)


def _make_conflict(name: str) -> Conflict:
    hint = "edit it, or write another file with `-f FILE`; one of RiseML 0.x or 1.x: `riseml init --convert`"
    return Conflict(f"{name} is already there", hint)


def write_new_config(folder: Path, name: str, text: str) -> None:
    """Write a new riseml.yml; remove it again when it cannot be written whole.

    Args:
        folder: the working directory.
        name: of the file, as the user writes it.
        text: the content.

    Raises:
        Conflict: the file is there.
        Refused: it cannot be written.
    """
    path = folder / name
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        raise _make_conflict(name) from None
    except OSError as error:
        raise _make_write_refusal(name, error) from None
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:  # the disk is full
        path.unlink(missing_ok=True)
        raise _make_write_refusal(name, error) from None


def _make_write_refusal(name: str, error: OSError) -> Refused:
    return Refused(f"cannot write {name}: {error.strerror}", "check the folder, its permissions and its disk")


def describe_spec(spec: Spec) -> str:
    """Return `project ai-toaster, tensorflow, 4 jobs (master, worker.1, worker.2, ps.1), 8 experiments`.

    Where parameters change the jobs, `list_topologies` describes them.
    """
    parts = [f"project {spec.project}"]
    if spec.train.framework:
        parts.append(spec.train.framework)
    jobs = _describe_jobs(spec.train)
    if jobs and len(spec.topologies) <= 1:
        parts.append(jobs)
    search = spec.train.search
    count = _count_experiments(spec.train.parameters)
    if search is not None:
        seeds = f" with {len(spec.train.seeds)} seeds each" if len(spec.train.seeds) > 1 else ""
        trials = f"{count_noun(search.trials, 'trial')}{seeds}"
        goals = " and ".join(f"{goal.value} {metric}" for metric, goal in search.objectives)
        summary = f"{search.method.value} search of {trials} to {goals}"
        parts.append(f"{summary}, {spec.train.concurrency} at the same time")
    elif count > 1:
        parts.append(f"{count} experiments, {spec.train.concurrency} at the same time")
    return ", ".join(parts)


def _count_experiments(parameters: Sequence[Parameter]) -> int:
    """Return how many combinations of values a grid has; a parameter with a distribution counts none."""
    from riseml.spec.config.conditions import combine_values

    if not any(parameter.when for parameter in parameters):
        return math.prod(len(parameter.values) for parameter in parameters)
    return sum(1 for _ in combine_values(parameters, [parameter.values for parameter in parameters]))


def list_topologies(spec: Spec) -> list[str]:
    """Return a line for each combination of the parameters that change the jobs: `workers=2: 3 jobs (...), ...`."""
    from riseml.frameworks.registry import choose_framework

    if len(spec.topologies) < 2:
        return []
    fixed = set.intersection(*(set(topology.values) for topology in spec.topologies))
    lines = []
    for topology in spec.topologies[:_MOST_TOPOLOGIES]:
        needs = [role.resources for role in choose_framework(topology.train).roles(topology.train)]
        cpus = sum(need.cpus for need in needs)
        gpus = sum(need.gpus for need in needs)
        amounts = [f"{cpus:g} cpus", format_bytes(2**20 * sum(need.mem for need in needs)), f"{gpus} gpus"]
        values = format_parameters(dict(pair for pair in topology.values if pair not in fixed))
        lines.append(f"  {values}: {_describe_jobs(topology.train)}, {', '.join(amounts if gpus else amounts[:2])}")
    more = len(spec.topologies) - _MOST_TOPOLOGIES
    return [*lines, f"  ... and {more} more"] if more > 0 else lines


def _describe_jobs(train: Train) -> str:
    """Return `4 jobs (master, worker.1, worker.2, ps.1)`; empty when riseml cannot run the framework."""
    from riseml.frameworks.registry import choose_framework

    try:
        jobs = [role.name for role in choose_framework(train).roles(train)]
    except RisemlError:
        return ""  # `validate` warns about it
    return f"{count_noun(len(jobs), 'job')} ({_join_names(jobs)})"


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names if len(names) <= 6 else [*names[:4], "...", names[-1]])
