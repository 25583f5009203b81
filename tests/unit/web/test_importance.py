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
    serve(() => ({ metric: "loss", parameters: [], trials: 12, stopped: 0, message: "" }));
    await panel.update(search);
    return panel.element.querySelector("h2")?.textContent;
    """
    assert run_page(script) == "What decides loss"
