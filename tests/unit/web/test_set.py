"""The page of a set: what it draws of its trials."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_points_of_a_front_are_means_over_seeds_where_a_trial_has_several() -> None:
    script = """
    const { listPoints } = await import("./set.js");
    const objectives = [{ metric: "quality", goal: "maximize" }, { metric: "cost", goal: "minimize" }];
    const experiments = [[10, "b", "2", 1, 4], [9, "b", "1", 2, 2], [1, "a", "1", 3, 1], [2, "a", "2", null, 9]].map(
      ([sub, lr, seed, rank, quality]) =>
        ({ id: `2.${sub}`, rank, parameters: { lr, seed }, scores: { quality, cost: 1 } }),
    );
    const found = { objectives, experiments };
    return [
      listPoints(found, { repeat: 1, front: [] }).map(({ id, first }) => [id, first]),
      listPoints(found, { repeat: 2, front: ["2.9"] }),
      listPoints({ objectives: objectives.slice(0, 1), experiments }, null),
    ];
    """
    assert run_page(script) == [
        [["2.10", True], ["2.9", False], ["2.1", False]],
        [{"id": "2.9", "values": [3, 1], "first": True}],
        [],
    ]
