"""The Pareto front of a search with several objectives."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_a_front_names_its_trials_and_marks_them() -> None:
    script = """
    const { FrontPanel } = await import("./front.js");
    const panel = new FrontPanel();
    const objectives = [{ metric: "accuracy", goal: "maximize" }, { metric: "latency", goal: "minimize" }];
    panel.show(objectives, [
      { id: "2.1", values: [0.9, 12], first: true },
      { id: "2.2", values: [0.5, 14], first: false },
      { id: "2.3", values: [0.7, 3], first: true },
    ]);
    const marked = [...panel.element.querySelectorAll("circle.first")].map((dot) => dot.textContent);
    const label = panel.element.querySelector("svg").getAttribute("aria-label");
    const words = panel.words.textContent;
    panel.show(objectives.slice(0, 1), []);
    return [marked, label, words, panel.element.hidden];
    """
    assert run_page(script) == [
        ["2.1: accuracy 0.9, latency 12", "2.3: accuracy 0.7, latency 3"],
        "2 of 3 trials are on the front of accuracy and latency",
        "2.3, 2.1: no other trial beats these in accuracy (larger) and latency (smaller).",
        True,
    ]
