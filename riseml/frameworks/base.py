"""What a framework plug-in is: at most five methods, no state, no I/O.

A plug-in speaks twice: `image`, `roles` and `options` when a plan is made, `bind` and `script` when all addresses are
known. What it has to remember in between goes through `options`, into the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from riseml.model import Environment, Plan
from riseml.names import JobName
from riseml.spec.config.types import Resources, Train
from riseml.states import Part

WORKER_GRACE = 10.0
EVALUATOR_GRACE = 600.0

_STOP = "case $? in 0) ;; *) exit ;; esac"
"""`sh -e` alone goes on behind `false && true`."""


@dataclass(frozen=True, slots=True)
class Role:
    """One job that a framework asks for. `run` replaces the user's command (tensorboard), None keeps it."""

    name: JobName
    part: Part
    resources: Resources
    grace: float = 0.0
    run: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """What one job is told of the others: variables, and the values of the built-in placeholders."""

    variables: Mapping[str, str]
    placeholders: Mapping[str, str]


class Framework(Protocol):
    """A framework."""

    name: str

    def image(self, train: Train) -> str | None:
        """The image that its users expect, None when it has none of its own."""

    def roles(self, train: Train) -> tuple[Role, ...]:
        """Every job of one experiment, a deciding one first."""

    def options(self, train: Train) -> Environment:
        """What it needs to know again in `bind` and `script`, kept with the plan."""

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        """What `job` is told. `addresses` gives `host:port` for every job of the plan."""

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        """What `/bin/sh -e` runs in `job`: the lines of `run`, their placeholders filled. Most want `in_order`."""


def in_order(lines: Sequence[str]) -> str:
    """One shell script that stops at the first failing line. A line that ends with a backslash goes on in the next."""
    *first, last = lines
    return "\n".join([*(line if _goes_on(line) else f"{line}\n{_STOP}" for line in first), last])


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
