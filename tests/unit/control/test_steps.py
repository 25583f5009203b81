"""Random histories: what follows from a seed, and the shortest history that is found for a broken law."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.control.histories import run
from tests.unit.control.history import History
from tests.unit.control.steps import FIRST, choice, draw_steps, find_rules, flag, integer, rule, several, shuffled


class Counter:
    """Breaks when it was increased three times, whatever else happens."""

    @rule(start=choice(0))
    def begin(self, start: int) -> None:
        self.value = start

    @rule(by=choice(1))
    def increase(self, by: int) -> None:
        self.value += by
        assert self.value < 3, "too much"

    @rule(values=several(integer(1, 5), 1, 3), order=shuffled("a", "b"), wide=flag())
    def do_nothing(self, values: list[int], order: list[str], *, wide: bool) -> None:
        assert 1 <= len(values) <= 3
        assert set(values) <= {1, 2, 3, 4, 5}
        assert sorted(order) == ["a", "b"]
        assert wide in (False, True)

    def teardown(self) -> None:
        assert self.value < 3


def test_the_error_says_the_shortest_history_that_raises_it_and_how_to_repeat_it() -> None:
    with pytest.raises(AssertionError, match="too much") as raised:
        run(50, 1, machine=Counter)
    first, *steps = raised.value.__notes__[0].splitlines()
    assert first.startswith("seed 1, history ")
    assert first.endswith(", 4 of its 21 steps:")
    assert steps == ["begin(start=0)", *["increase(by=1)"] * 3]
    place = int(first.split()[3].rstrip(","))
    run(place, 1, machine=Counter)  # those before it break no law
    with pytest.raises(AssertionError, match="too much"):
        run(1, 1, first=place, machine=Counter)


def test_histories_follow_from_their_seed_and_some_repeat_few_rules() -> None:
    rules = find_rules(History)
    one, same, other = (draw_steps(rules, Random(seed), 20) for seed in ("1/1", "1/1", "1/2"))
    assert one == same != other
    assert [step.rule for step in (one[0], other[0])] == [FIRST, FIRST]
    used = [{step.rule for step in draw_steps(rules, Random(number), 20)} - {FIRST} for number in range(300)]
    assert set().union(*used) == rules.keys() - {FIRST}
    assert min(map(len, used)) < 5
    assert max(map(len, used)) > 12
