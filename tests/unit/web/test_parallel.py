"""Parallel coordinates of a search that goes on."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_the_trial_that_the_user_looks_at_stays_marked_when_another_one_ends() -> None:
    script = """
    const { ParallelPanel } = await import("./parallel.js");
    const panel = new ParallelPanel();
    const trials = ["2.1", "2.2"].map((id, at) => ({ id, values: [at, at] }));
    panel.range.value = "100";
    panel.show(["lr", "loss"], trials);
    panel.mark(1);
    panel.show(["lr", "loss"], [{ id: "2.3", values: [5, 5] }, ...trials]);
    return [panel.marked, panel.values.textContent];
    """
    assert run_page(script) == [2, "2.2: lr 1 · loss 1"]
