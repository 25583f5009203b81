"""The whole page: its addresses, and what it does when the server does not answer for a while."""

from __future__ import annotations

from tests.support.javascript import run_page

PAGE = """
const common = { created_at: "2025-01-01T00:00:00Z", started_at: null, ended_at: null, message: "", project: "toaster" };
const view = { ...common, id: "4", user: "paul", state: "FINISHED", type: "notebook", parameters: {}, metrics: [], jobs: [], experiments: [] };
const answers = { "/experiments": { experiments: [] }, "/experiments/4": view, "/experiments/4/events": { events: [] } };
let down = null; // requests that the server does not answer
serve((path) => {
  if (down?.test(path)) throw new TypeError("the server does not answer");
  return answers[path] ?? { names: [], jobs: [], experiments: [] };
});
const wait = globalThis.setTimeout;
globalThis.setTimeout = (task, pause) => (pause < 1000 ? setImmediate(task) : wait(task, pause)); // tries again at once
"""  # noqa: E501  # one definition each


def test_the_address_without_a_filter_shows_all_experiments() -> None:
    """The user has typed a filter, which is in the address, and goes to the experiments again."""
    script = """
    const { main, go } = await openPage();
    const input = main.querySelector("input");
    input.value = "state:running";
    input.dispatchEvent(new Event("input"));
    const typed = location.search;
    go("/");
    return [typed, location.search, main.querySelector("input").value];
    """
    assert run_page(PAGE + script) == ["?filter=state%3Arunning", "", ""]


def test_a_view_that_was_opened_without_a_server_goes_on_when_it_answers() -> None:
    script = """
    const { main, go, say } = await openPage();
    down = /experiments/;
    go("/experiments/4");
    while (!main.querySelector("[role=\\"alert\\"]")) await settle();
    const text = main.textContent;
    down = null;
    say(null);
    await settle();
    await settle();
    return [text, main.querySelector("h1")?.textContent];
    """
    problem, title = run_page(PAGE + script)
    assert problem.startswith("The server does not answer.")
    assert title == "notebook 4 toaster"


def test_a_part_of_a_view_that_could_not_be_read_is_read_when_the_server_answers() -> None:
    script = """
    answers["/experiments/4/explain"] = { summary: "It has ended.", blockers: [], jobs: [], hosts: [], activities: [] };
    const { main, go, say } = await openPage();
    down = /explain$/;
    go("/experiments/4/explain");
    while (!main.querySelector("[role=\\"alert\\"]")) await settle();
    down = null;
    say(null);
    await settle();
    await settle();
    return main.querySelector("p.summary")?.textContent;
    """
    assert run_page(PAGE + script) == "It has ended."


def test_an_unreadable_address_is_not_a_page() -> None:
    script = """
    location = new URL("/experiments/%zz", location);
    const { main } = await openPage();
    return main.querySelector("h1")?.textContent;
    """
    assert run_page(PAGE + script) == "There is no such page"
