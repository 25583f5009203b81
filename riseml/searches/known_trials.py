"""The trials of a search as Optuna's storage: those of the records, and those that Optuna proposes now.

Optuna's own storage copies each trial that it gets. With a thousand trials that takes ten times as long as to choose
the next point.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

_CONSTRAINTS = "constraints"  # the attribute of a trial in which Optuna looks for what it fails


class KnownTrials(InMemoryStorage):
    """The storage of one study. Several storages share the known trials; none keeps proposed trials afterwards.

    Args:
        known: the trials so far, by their numbers from 0. They never change.
    """

    def __init__(self, trials: Sequence[FrozenTrial]) -> None:
        super().__init__()
        self._every = list(trials)

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """Add a trial that runs, and return its number, which is its id, too."""
        number = len(self._every)
        self._every.append(make_frozen_trial(number, TrialState.RUNNING))
        return number

    def set_trial_param(
        self, trial_id: int, param_name: str, param_value_internal: float, distribution: BaseDistribution
    ) -> None:
        """Set one value of a proposed trial."""
        trial = self._every[trial_id]
        trial.params = {**trial.params, param_name: distribution.to_external_repr(param_value_internal)}
        trial.distributions = {**trial.distributions, param_name: distribution}

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Keep an attribute that a sampler sets on a proposed trial."""
        trial = self._every[trial_id]
        trial.system_attrs = {**trial.system_attrs, key: value}

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """Return a trial by its id."""
        return self._every[trial_id]

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,  # noqa: FBT001, FBT002  # Optuna passes it so
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """Return all trials, or those in some states."""
        trials = [trial for trial in self._every if states is None or trial.state in states]
        return copy.deepcopy(trials) if deepcopy else trials

    # taken from the base class: they call the methods above instead of reading the lists of `InMemoryStorage`
    get_n_trials = BaseStorage.get_n_trials
    get_trial_number_from_id = BaseStorage.get_trial_number_from_id
    get_trial_param = BaseStorage.get_trial_param


def make_frozen_trial(
    number: int,
    state: TrialState,
    value: float | None = None,
    values: tuple[dict[str, Any], dict[str, BaseDistribution]] | None = None,
    reached: dict[int, float] | None = None,
    scores: Sequence[float] = (),
    excess: float | None = None,
) -> FrozenTrial:
    """Return a trial as Optuna knows it.

    Args:
        number: of the trial, from 0.
        state: what became of it.
        value: of the metric; None: none is known.
        values: of the parameters, and the distributions that they come from.
        reached: values of the metric at steps.
        scores: values of several objectives, instead of `value`.
        excess: by how much it fails the constraints; None: there are none.
    """
    params, distributions = values or ({}, {})
    return FrozenTrial(
        number=number,
        trial_id=number,
        state=state,
        value=None if scores else value,
        values=scores or None,
        datetime_start=None,
        datetime_complete=None,
        params=params,
        distributions=distributions,
        user_attrs={},
        system_attrs={} if excess is None else {_CONSTRAINTS: [excess]},
        intermediate_values=reached or {},
    )
