"""The points of a set over their seeds, on the page."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_points_have_their_statistics_and_the_lucky_seed_is_named() -> None:
    script = """
    const { GroupPanel } = await import("./groups.js");
    const panel = new GroupPanel("144", new AbortController().signal);
    const asked = [];
    const runs = [{ id: "144.4", seed: "1", value: 0.99 }];
    const whole = { ids: ["144.1", "144.2"], rank: 1, parameters: { lr: "0.1" }, n: 2, mean: 0.9, deviation: 0.01,
      low: 0.89, high: 0.91, runs: [], failed: 0, stopped: 0, unfinished: 0 };
    const broken = { ...whole, ids: ["144.4", "144.5"], rank: null, parameters: { lr: "1" }, n: 1, mean: 0.99,
      deviation: null, low: null, high: null, runs, failed: 1 };
    serve((path) => {
      asked.push(path);
      return { objective: null, column: "accuracy", total: 4, matched: 4, parameters: ["lr"], same: {},
        best_run: runs[0], groups: [whole, broken] };
    });
    await panel.update({ parameters: ["lr"] }, "accuracy");
    const hidden = panel.element.hidden;
    await panel.update({ parameters: ["lr", "seed"] }, "accuracy");
    const rows = [...panel.element.querySelectorAll("tr")].map((row) => row.textContent);
    return { hidden, shown: !panel.element.hidden, asked: asked.length, rows, text: panel.element.textContent };
    """
    found = run_page(script)
    assert (found["hidden"], found["shown"], found["asked"]) == (True, True, 1)
    assert "0.89 to 0.91" in found["text"]
    assert "1 without a value" in found["text"]
    assert "The luckiest single run is 144.4 with 0.99." in found["text"]
