"""The way to a TensorBoard."""

from __future__ import annotations

from tests.support.javascript import run_page

BOARD = """
const { showBoard } = await import("./tensorboard.js");
const wait = globalThis.setTimeout;
globalThis.setTimeout = (task, pause) => (pause < 1000 ? setImmediate(task) : wait(task, pause)); // tries again at once
location = new URL("/tensorboard?of=4", location);
let place = "";
URL.prototype.replace = (url) => void (place = String(url)); // location is a URL here
history.state = { begins: true };
const view = { id: "4", type: "tensorboard", state: "RUNNING", message: "", last_lines: [], jobs: [] };
let address = null;
let asked = 0;
serve((path) => {
  if (!path.endsWith("/address")) return view;
  asked += 1;
  return address?.() ?? new Response("{}", { status: 409 });
});
const feed = makeFeed();
const main = new FakeElement("main");
showBoard(main, { feed, signal: new AbortController().signal, parts: ["tensorboard"] });
await settle();
"""


def test_a_tensorboard_that_has_ended_is_not_asked_again() -> None:
    """A view that went on would take the browser there when the user does something else with it."""
    script = """
    view.state = "FAILED";
    feed.pulse();
    await settle();
    const problem = main.querySelector("div.problem").textContent;
    const former = asked;
    feed.pulse();
    await settle();
    return [problem, asked - former];
    """
    assert run_page(BOARD + script) == ["TensorBoard 4 has ended: ", 0]


def test_a_server_that_does_not_answer_for_a_while_ends_nothing() -> None:
    script = """
    address = () => { throw new TypeError("the server does not answer"); };
    feed.pulse();
    for (let turns = 0; turns < 10; turns += 1) await settle();
    address = () => ({ url: "http://4-6f1c.localhost:1/" });
    feed.pulse();
    await settle();
    return place;
    """
    assert run_page(BOARD + script) == "http://4-6f1c.localhost:8427/"


def test_the_page_of_a_team_starts_no_tensorboard_and_shows_the_command() -> None:
    script = """
    location = new URL("https://gpu1:8443/tensorboard?of=4&of=7");
    history.state = { begins: true };
    let asked = 0;
    serve(() => void (asked += 1));
    const { showBoard } = await import("./tensorboard.js");
    const main = new FakeElement("main");
    showBoard(main, { feed: makeFeed(), signal: new AbortController().signal, parts: ["tensorboard"] }, false);
    await settle();
    return [asked, main.querySelector("code").textContent, main.querySelector("button") ?? null];
    """
    assert run_page(script) == [0, "riseml tensorboard 4 7", None]
