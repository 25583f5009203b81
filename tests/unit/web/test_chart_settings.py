"""What a user has chosen for a chart: in the address and in the browser."""

from __future__ import annotations

import pytest

from tests.support.javascript import run_page

SETTINGS = """
const kept = new Map();
globalThis.localStorage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => kept.set(name, text) };
const { PLAIN, keepSettings, parseSettings, readSettings, writeSettings } = await import("./chart_settings.js");
"""


def test_settings_are_kept_in_the_address_and_in_the_browser() -> None:
    script = """
    location = new URL("/compare?of=4&of=7", location);
    const zoom = { x: [1, 2.5], y: null };
    const hidden = ["2.1", "a&b"];
    const chosen = { ...PLAIN, isLog: true, x: "val loss", smoothing: 0.6, by: "lr", band: "error", hidden, zoom };
    keepSettings("comparison", "val & loss", chosen);
    const address = location.search;
    const again = readSettings("comparison", "val & loss");
    location = new URL("/compare?of=8", location);
    const elsewhere = readSettings("comparison", "val & loss");
    const others = [readSettings("set", "val & loss"), readSettings("comparison", "loss")];
    keepSettings("comparison", "val & loss", PLAIN);
    return [address, chosen, again, elsewhere, others, PLAIN, location.search];
    """
    address, chosen, again, elsewhere, others, plain, after = run_page(SETTINGS + script)
    assert address.startswith("?of=4&of=7&chart.val+%26+loss=")
    assert again == chosen
    assert elsewhere == {**chosen, "hidden": [], "zoom": None}, "what belongs to other curves stays in the address"
    assert others == [plain, plain]
    assert after == "?of=8"


@pytest.mark.parametrize(
    "text",
    [
        *("smooth=7e999", "smooth=-1", "smooth=x", "band=wide", "zoom=2 1", "zoom=1", "zoom=x y", "zoom=1 Infinity"),
        *("log=yes", "x=", "%%%", "[]", "by="),
    ],
)
def test_an_address_that_nobody_has_made_here_changes_nothing(text: str) -> None:
    changed, plain = run_page(f"{SETTINGS} return [parseSettings({text!r}), PLAIN]")
    if text == "smooth=7e999":
        assert changed["smoothing"] <= 0.999
        changed["smoothing"] = 0
    assert changed == plain


@pytest.mark.parametrize("text", ["{", "[1]", '{"set loss": 7}', "null"])
def test_a_store_of_the_browser_that_is_no_such_thing_counts_as_empty(text: str) -> None:
    script = f"kept.set('riseml-charts', {text!r}); return [readSettings('set', 'loss'), PLAIN]"
    read, plain = run_page(SETTINGS + script)
    assert read == plain
