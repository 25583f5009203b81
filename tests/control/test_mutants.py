"""The laws have teeth: a loop that breaks one of its rules is caught by the random histories, on any seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.control.histories import run
from tests.control.mutants import MUTANTS

MOST = 3000
"""Each of them dies within 500 histories on every seed that was tried."""


@pytest.fixture(params=MUTANTS)
def mutant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for module, name, mutate in MUTANTS[request.param]:
        monkeypatch.setattr(module, name, mutate(getattr(module, name)))
    yield request.param


def test_the_laws_catch_it(mutant: str) -> None:
    with pytest.raises((AssertionError, LookupError, ExceptionGroup)):
        run(MOST, 1, shrink=False)


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 16
