"""The page of a set: columns whose names are all different."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_a_parameter_and_a_metric_of_one_name_have_two_heads() -> None:
    script = """
    const { listHeads } = await import("./set.js");
    const found = { metrics: ["lr", "loss", "State"], parameters: ["lr", "id", "units"], experiments: [{}] };
    const population = { ...found, experiments: [{ generation: 1 }] };
    return [listHeads(found).heads, listHeads(population)];
    """
    own = ["Rank", "ID", "State"]
    further = ["metrics.lr", "loss", "metrics.State", "parameters.lr", "parameters.id", "units", "Duration"]
    population = {"heads": [*own, "Generation", "Parent", *further], "numbers": [0, 3, 5, 6, 7, 11]}
    assert run_page(script) == [[*own, *further], population]


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


def test_the_leaderboard_shows_the_value_that_ranks() -> None:
    script = """
    const { readShown } = await import("./set.js");
    const metrics = [{ name: "quality", last: 0.9 }, { name: "cost", last: 7 }];
    const objectives = [{ metric: "quality" }, { metric: "cost" }];
    const one = { value: 0.8, scores: {}, metrics };
    const several = { value: null, scores: { quality: 0.7, cost: 6 }, metrics };
    const failed = { value: null, scores: {}, metrics };
    return [
      ["quality", "cost"].map((name) => readShown(one, name, { objectives: objectives.slice(0, 1) })),
      ["quality", "cost"].map((name) => readShown(several, name, { objectives })),
      ["quality", "cost"].map((name) => readShown(failed, name, { objectives: objectives.slice(0, 1) }) ?? null),
      ["quality", "cost"].map((name) => readShown(one, name, { objectives: [] })),
    ];
    """
    assert run_page(script) == [[0.8, 7], [0.7, 6], [None, 7], [0.9, 7]]
