"""The random histories catch every mutant: a loop or a store that breaks one of its rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.control.cluster_history import ClusterHistory
from tests.unit.control.gang_ends import SupervisorSite, check_histories
from tests.unit.control.histories import run
from tests.unit.control.history import History
from tests.unit.control.mutants import MUTANTS, OF_GANGS, OF_THE_STORE, ON_CLUSTERS, ON_TEAMS, Change
from tests.unit.control.stored import stored_history
from tests.unit.control.team_history import TeamHistory

pytestmark = pytest.mark.long

MOST = 3000
"""The laws catch each mutant within 700 histories on each of six seeds, and most within 10."""


@pytest.fixture(params=MUTANTS)
def mutant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for module, name, mutate in MUTANTS[request.param]:
        monkeypatch.setattr(module, name, mutate(getattr(module, name)))
    yield request.param


def test_the_laws_catch_a_loop_that_breaks_a_rule(mutant: str) -> None:
    with pytest.raises((AssertionError, LookupError, ExceptionGroup)):
        run(MOST, 1, shrink=False)


@pytest.mark.parametrize(
    ("changes", "machine"),
    [
        *((change, ClusterHistory) for change in ON_CLUSTERS.values()),
        *((change, TeamHistory) for change in ON_TEAMS.values()),
    ],
    ids=[*ON_CLUSTERS, *ON_TEAMS],
)
def test_the_laws_catch_a_loop_that_breaks_a_rule_of_clusters_or_teams(
    changes: tuple[Change, ...], machine: type[History], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, attribute, mutate in changes:
        monkeypatch.setattr(module, attribute, mutate(getattr(module, attribute)))
    with pytest.raises((AssertionError, LookupError, ExceptionGroup)):
        run(MOST, 1, shrink=False, machine=machine)


@pytest.mark.parametrize("name", OF_THE_STORE)
def test_the_laws_catch_a_store_that_breaks_a_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, attribute, mutate in OF_THE_STORE[name]:
        monkeypatch.setattr(module, attribute, mutate(getattr(module, attribute)))
    with stored_history() as machine, pytest.raises((AssertionError, LookupError, ExceptionGroup)):
        run(MOST, 1, shrink=False, machine=machine)


@pytest.mark.parametrize("name", OF_GANGS)
def test_the_law_of_gangs_catches_a_caller_that_breaks_a_rule(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, attribute, mutate in OF_GANGS[name]:
        monkeypatch.setattr(module, attribute, mutate(getattr(module, attribute)))
    with pytest.raises(AssertionError):
        check_histories(MOST, 1, SupervisorSite(tmp_path, monkeypatch))


def test_there_are_enough_mutants() -> None:
    assert len(MUTANTS) >= 16
