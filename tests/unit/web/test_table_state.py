"""What a user wants of a table: in the address and back, the order after a click, and filters for the server."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_the_address_says_what_differs_from_the_usual_table() -> None:
    script = """
    const { makeState, readState, writeState } = await import("./table_state.js");
    const usual = { ...makeState(), sort: "-id", group: ["set"], pinned: ["id"] };
    const columns = ["id", '"a, b".max', "lr"];
    const state = { columns, pinned: [], widths: { 'a:b': 40 }, sort: "", group: [], where: "a<1 b" };
    const back = readState(new URLSearchParams(String(writeState(state, usual))), usual);
    const odd = readState(new URLSearchParams("width=lr:x&width=:3&width=w:99999&column="), usual);
    const isSame = JSON.stringify(back) === JSON.stringify(state);
    return [isSame, String(writeState(usual, usual)), odd.widths, odd.columns];
    """
    assert run_page(script) == [True, "", {"w": 900}, []]


def test_clicks_sort_down_up_and_not_and_with_shift_by_several() -> None:
    script = """
    const { toggleSort } = await import("./table_state.js");
    const down = toggleSort("-id", "lr", false);
    const up = toggleSort(down, "lr", false);
    const both = toggleSort(up, '"a, b".max', true);
    return [down, up, toggleSort(up, "lr", false), both, toggleSort(both, "lr", true)];
    """
    assert run_page(script) == ["-lr", "lr", "", 'lr,-"a, b".max', '-"a, b".max']


def test_terms_with_spaces_between_them_must_all_hold() -> None:
    script = """
    const { splitFilter } = await import("./table_state.js");
    const texts = ["state:finished lr<0.1", "lr < 0.1 and a=1", 'tag:baseline -star name="a b"', "base -line lr=1", "",
      "lr<", "-archived or x"];
    return texts.map((text) => { const { where, words } = splitFilter(text); return [where, words.join()]; });
    """
    assert run_page(script) == [
        ["state:finished and lr<0.1", ""],
        ["lr < 0.1 and a=1", ""],
        ['tag:baseline and -star and name="a b"', ""],
        ["lr=1", "base,-line"],
        ["", ""],
        ["lr<", ""],
        ["-archived or x", ""],
    ]


def test_a_clicked_value_is_a_condition_whatever_is_in_it() -> None:
    script = """
    const { addCondition, writeEqual } = await import("./table_state.js");
    const one = addCondition("", writeEqual("evil", 'a" or <b> \\\\'));
    return [one, addCondition("lr<1 x:2", writeEqual("tags", "a,b c")), addCondition("lr=1", writeEqual("lr", "1")),
      writeEqual("loss", 0.5)];
    """
    assert run_page(script) == [
        'evil="a\\" or <b> \\\\"',
        'lr<1 and x:2 and tag:a and tag:"b c"',
        "lr=1",
        "loss=0.5",
    ]
