"""Elements of the web page that are drawn again."""

from __future__ import annotations

from tests.support.javascript import run_page

FILL = """
const { fill, make } = await import("./dom.js");
const place = make("div");
document.body.append(place);
const draw = (...children) => fill(place, ...children);
"""


def test_the_focus_goes_to_what_takes_the_place_of_an_element() -> None:
    script = """
    const links = () => ["4", "5"].map((id) => make("a", { href: `/experiments/${id}` }, `experiment ${id}`));
    draw(links());
    place.children[1].focus();
    draw(make("p", {}, "a remark"), links());
    const link = document.activeElement.textContent;
    const table = (value) => make("div", { tabindex: "0", "aria-label": "Resources, table" }, value);
    draw(table("0.5 cores"));
    place.children[0].focus();
    draw(table("0.7 cores"));
    return [link, document.activeElement.textContent];
    """
    assert run_page(FILL + script) == ["experiment 5", "0.7 cores"]


def test_no_other_control_gets_the_focus() -> None:
    """A user who presses Enter does what the control said that had the focus, and nothing else."""
    script = """
    draw(make("button", {}, "Rerun"));
    place.children[0].focus();
    draw(make("button", {}, "Kill"));
    return document.activeElement.tagName;
    """
    assert run_page(FILL + script) == "BODY"


def test_what_is_scrolled_stays_so_when_it_is_drawn_again() -> None:
    """A table that is wider than the window is drawn again with each value that comes."""
    script = """
    const table = (value) => [make("p", {}, value), make("div", { tabindex: "0", "aria-label": "Leaderboard, table" }, value)];
    draw(table("0.5"));
    Object.assign(place.children[1], { scrollLeft: 400, scrollTop: 20 });
    draw(table("0.7"));
    const { scrollLeft, scrollTop, textContent } = place.children[1];
    return [scrollLeft, scrollTop, textContent];
    """  # noqa: E501  # one table
    assert run_page(FILL + script) == [400, 20, "0.7"]
