"""Which parameters of a search decide its metric."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_what_could_not_be_read_is_read_with_the_next_reading() -> None:
    script = """
    const { ImportancePanel } = await import("./importance.js");
    const panel = new ImportancePanel("2", new AbortController().signal);
    const search = { complete: 12, stopped: 0, made: 12 };
    serve(() => undefined);
    await panel.update(search).catch(() => {});
    const table = { metric: "loss", parameters: [], trials: 12, stopped: 0, message: "", when: "" };
    const some = { ...table, when: "optimizer is sgd", trials: 5, message: "5 of the 10 trials" };
    serve(() => ({ tables: [table, some] }));
    await panel.update(search);
    return ["h2", "p"].map((tag) => panel.element.querySelectorAll(tag).map((one) => one.textContent));
    """
    source = "Optuna's PED-ANOVA over 12 trials. It compares the best trials with all: what decides them comes first."
    titles = ["What decides loss", "What decides loss where optimizer is sgd"]
    assert run_page(script) == [titles, [source, "5 of the 10 trials"]]
