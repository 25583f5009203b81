"""Rows of which only those in sight are elements: what moves them, and what does not."""

from __future__ import annotations

from tests.support.javascript import run_page

ROWS = """
const { VirtualRows } = await import("./virtual.js");
const scroller = new FakeElement("div");
const rows = new FakeElement("div");
document.body.append(scroller);
scroller.append(rows);
scroller.clientHeight = 400;
const draw = (first, last) => Array.from({ length: last - first }, (_, at) => Object.assign(new FakeElement("p"), { row: first + at }));
const space = () => new FakeElement("div");
const virtual = new VirtualRows({ scroller, rows, height: 20, draw, space }, new AbortController().signal);
const list = () => rows.querySelectorAll("p");
const scroll = (top) => { scroller.scrollTop = top; scroller.dispatchEvent(new Event("scroll")); };
"""  # noqa: E501  # one definition each


def test_rows_that_are_drawn_stay_when_others_come() -> None:
    """The user has selected a text in them, or has the focus there."""
    script = """
    virtual.refresh(12);
    const former = list();
    virtual.grow(14);
    return [list().length, former.every((row, at) => list()[at] === row)];
    """
    assert run_page(ROWS + script) == [14, True]


def test_a_cell_that_looks_as_before_stays_when_the_table_is_drawn_again() -> None:
    """The user has selected a text in it. A new experiment moves it down, and another cell of its row may change."""
    script = """
    let table = [["3", "RUNNING"], ["2", "FINISHED"], ["1", "FAILED"]];
    const cell = (text) => { const made = new FakeElement("td"); made.append(text); return made; };
    virtual.options.draw = (first, last) => table.slice(first, last).map(([id, state], at) => {
      const row = new FakeElement("p");
      row.setAttribute("data-id", id);
      row.setAttribute("aria-rowindex", String(first + at + 2));
      row.append(cell(id), cell(state));
      return row;
    });
    const show = () => { virtual.refresh(table.length); return rows.querySelectorAll("td"); };
    const former = show();
    table = [["4", "RUNNING"], ["3", "KILLED"], ["2", "FINISHED"], ["1", "FAILED"]];
    const now = show();
    const numbers = list().map((row) => row.getAttribute("aria-rowindex"));
    table = [["2", "FINISHED"]];
    const last = show();
    return [now.map((one) => former.indexOf(one)), numbers, now.map((one) => one.textContent), last.map((one) => former.indexOf(one))];
    """  # noqa: E501  # one definition each
    texts = ["4", "RUNNING", "3", "KILLED", "2", "FINISHED", "1", "FAILED"]
    assert run_page(ROWS + script) == [[-1, -1, 0, -1, 2, 3, 4, 5], ["2", "3", "4", "5"], texts, [2, 3]]


def test_a_long_log_that_grows_does_not_move_what_the_user_reads() -> None:
    """A pixel stands for several of its lines. The browser rounds the place of the scroller."""
    script = """
    let top = 0;
    Object.defineProperty(scroller, "scrollTop", { get: () => top, set: (value) => (top = Math.round(value)) });
    virtual.refresh(1_000_000);
    scroll(4_000_000);
    const former = virtual.first;
    for (let total = 1_000_000; total <= 2_000_000; total += 1000) virtual.grow(total);
    const read = virtual.first;
    scroll(top + 1);
    return [read - former, Math.abs(virtual.first - former) < 20];
    """
    assert run_page(ROWS + script) == [0, True]


def test_the_end_is_shown_when_the_user_follows() -> None:
    script = """
    virtual.refresh(1_000_000);
    scroller.scrollHeight = 8_000_000;
    virtual.showEnd();
    virtual.grow(1_500_000);
    virtual.showEnd();
    return list().at(-1).row;
    """
    assert run_page(ROWS + script) == 1_499_999


def test_a_context_menu_does_not_hold_the_rows() -> None:
    """No browser says that the button of the mouse is up again when its menu is open."""
    script = """
    virtual.refresh(100);
    rows.dispatchEvent(Object.assign(new Event("pointerdown"), { button: 2 }));
    scroll(800);
    const first = virtual.first;
    rows.dispatchEvent(Object.assign(new Event("pointerdown"), { button: 0 }));
    scroll(1000);
    const held = virtual.first;
    window.dispatchEvent(new Event("contextmenu"));
    await new Promise((resolve) => setTimeout(resolve));
    return [first, held, virtual.first];
    """
    assert run_page(ROWS + script) == [40, 40, 50]
