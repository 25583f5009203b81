"""The laws have teeth: a loop that breaks one of its rules is caught by the random histories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from riseml.control import decide, place, settle, verdict
from riseml.control.actions import Action
from riseml.model import Experiment, Job, JobKey
from riseml.states import Part, State
from tests.control.test_laws import History

MANY = settings(
    max_examples=3000,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def leave_orphans(original: Callable[..., Iterator[Action]]) -> Callable[..., Iterator[Action]]:
    def mutant(name: Any, key: JobKey, found: Any, experiment: Experiment | None, seen: Any) -> Iterator[Action]:
        return iter(()) if experiment is None else original(name, key, found, experiment, seen)

    return mutant


def let_servers_run_on(original: Callable[..., Job]) -> Callable[..., Job]:
    def mutant(experiment: Experiment, job: Job, decided: Any, seen: Any) -> Job:
        return job if job.part is Part.SERVES else original(experiment, job, decided, seen)

    return mutant


def give_up_on_starts_quietly(original: Callable[..., Job]) -> Callable[..., Job]:
    def mutant(job: Job, seen: Any, state: State, *rest: Any) -> Job:
        return job if state is State.FAILED and job.state is State.STARTING else original(job, seen, state, *rest)

    return mutant


def forget_what_is_held(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(capacity: Any, jobs: list[Job]) -> Any:
        return original(capacity, [job for job in jobs if job.state is State.RUNNING])

    return mutant


def place_what_fits(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(waiting: Experiment, *rest: Any) -> Experiment | None:
        found: Experiment | None = original(waiting, *rest)
        if found is None or len(found.jobs) < 3:
            return found
        last = replace(found.jobs[-1], host=None, state=State.CREATED)
        return replace(found, jobs=(*found.jobs[:-1], last))

    return mutant


def retry_after_a_kill(original: Callable[..., Experiment]) -> Callable[..., Experiment]:
    def mutant(experiment: Experiment, seen: Any) -> Experiment:
        going = experiment.verdict is not None and experiment.verdict.again
        return experiment if going else original(experiment, seen)

    return mutant


def believe_in_success(original: Callable[..., Job]) -> Callable[..., Job]:
    def mutant(job: Job, *rest: Any) -> Job:
        found = original(job, *rest)
        return replace(found, state=State.FINISHED) if found.part is Part.DECIDES else found

    return mutant


def close_at_once(original: Callable[..., Experiment]) -> Callable[..., Experiment]:
    def mutant(experiment: Experiment, *rest: Any) -> Experiment:
        return replace(experiment, closed=True) if experiment.verdict is not None else original(experiment, *rest)

    return mutant


MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "orphans are left": (decide, "_converge_container", leave_orphans),
    "a ps outlives its master": (verdict, "_end_job", let_servers_run_on),
    "a failed start is not noticed": (settle, "_end", give_up_on_starts_quietly),
    "room is given twice": (place, "_left", forget_what_is_held),
    "a gang is placed in part": (place, "_place_gang", place_what_fits),
    "a kill does not end retrying": (decide, "judge", retry_after_a_kill),
    "a failed master counts as success": (settle, "_settle_exit", believe_in_success),
    "closed before everything is gone": (decide, "_close", close_at_once),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_laws_catch_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module, function, mutate = MUTANTS[name]
    monkeypatch.setattr(module, function, mutate(getattr(module, function)))
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(History, settings=MANY)
