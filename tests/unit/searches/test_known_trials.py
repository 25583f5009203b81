"""The trials of a search as Optuna's storage: known ones are shared, and proposed ones are the storage's own."""

from __future__ import annotations

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from riseml.searches.known_trials import KnownTrials, make_frozen_trial

LR = FloatDistribution(0.0, 1.0)


def list_finished(count: int) -> list[FrozenTrial]:
    return [
        make_frozen_trial(number, TrialState.COMPLETE, number / 10, ({"lr": number / 10}, {"lr": LR}))
        for number in range(count)
    ]


def test_a_study_goes_on_behind_the_known_trials_and_leaves_them_as_they_were() -> None:
    trials = list_finished(3)
    study = optuna.create_study(storage=KnownTrials(trials))
    proposed = study.ask({"lr": LR})
    assert proposed.number == 3
    assert [trial.state for trial in study.get_trials()] == [TrialState.COMPLETE] * 3 + [TrialState.RUNNING]
    assert study.get_trials()[3].params == proposed.params
    assert len(trials) == 3


def test_a_proposed_trial_is_in_one_storage_alone() -> None:
    trials = list_finished(2)
    first, second = KnownTrials(trials), KnownTrials(trials)
    assert first.create_new_trial(0) == 2
    assert [storage.get_n_trials(0) for storage in (first, second)] == [3, 2]


def test_values_and_attributes_of_a_proposed_trial_are_kept() -> None:
    storage = KnownTrials([])
    number = storage.create_new_trial(0)
    storage.set_trial_param(number, "lr", 0.25, LR)
    storage.set_trial_system_attr(number, "sampler", "x")
    trial = storage.get_trial(number)
    assert (trial.params, trial.distributions, trial.system_attrs) == ({"lr": 0.25}, {"lr": LR}, {"sampler": "x"})
    assert storage.get_trial_param(number, "lr") == 0.25


@pytest.mark.parametrize(
    ("states", "numbers"), [(None, [0, 1, 2]), ((TrialState.COMPLETE,), [0, 1]), ((TrialState.RUNNING,), [2]), ((), [])]
)
def test_trials_are_listed_by_state(states: tuple[TrialState, ...] | None, numbers: list[int]) -> None:
    storage = KnownTrials(list_finished(2))
    storage.create_new_trial(0)
    assert [trial.number for trial in storage.get_all_trials(0, states=states)] == numbers


def test_trials_are_copied_only_where_the_caller_asks() -> None:
    storage = KnownTrials(list_finished(1))
    (same,) = storage.get_all_trials(0, deepcopy=False)
    (copied,) = storage.get_all_trials(0)
    assert same is storage.get_trial(0)
    assert copied is not same
    assert copied == same
