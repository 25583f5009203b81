"""The page of a set: columns whose names are all different."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_a_parameter_and_a_metric_of_one_name_have_two_heads() -> None:
    script = """
    const { listHeads } = await import("./set.js");
    const found = { metrics: ["lr", "loss", "State"], parameters: ["lr", "id", "units"] };
    return listHeads(found).heads;
    """
    assert run_page(script) == [
        *("Rank", "ID", "State", "metrics.lr", "loss", "metrics.State"),
        *("parameters.lr", "parameters.id", "units", "Duration"),
    ]
