"""Fronts as their definition says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from riseml.spec.scalars.fronts import rank_fronts

Rows = list[tuple[float, ...]]


def is_better(row: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return row != other and all(number <= reference for number, reference in zip(row, other, strict=True))


@given(st.integers(1, 4).flatmap(lambda size: st.lists(st.tuples(*[st.integers(0, 5)] * size), max_size=30)))
def test_a_front_is_what_nothing_left_beats(rows: Rows) -> None:
    ranks = rank_fronts(rows)
    left = dict(enumerate(rows))
    rank = 0
    while left:
        rank += 1
        front = {at for at, row in left.items() if not any(is_better(other, row) for other in left.values())}
        assert front == {at for at in left if ranks[at] == rank}
        left = {at: row for at, row in left.items() if at not in front}


def test_a_thousand_points_take_no_time() -> None:
    """All are on one front: each is compared with all others."""
    assert set(rank_fronts([(at, 1_000 - at) for at in range(1_000)])) == {1}
