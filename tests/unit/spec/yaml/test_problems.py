"""Problems of a file: how they read, in which order, and how many."""

from __future__ import annotations

from riseml.spec.config.loader import check_config


def test_at_most_200_problems_are_listed_and_the_rest_is_counted() -> None:
    checked = check_config("".join(f"k{number}: 1\n" for number in range(4000)))
    assert len(checked.problems) == 201
    assert checked.problems[-1].problem == "3,802 more problems are not listed"
