"""The log of the web page: it is live, and leaves to the user what the user reads."""

from __future__ import annotations

from tests.support.javascript import run_page

LOG = """
const { showExperiment } = await import("./experiment.js");
const common = { project: "toaster", state: "RUNNING", type: "experiment", created_at: "2025-01-01T00:00:00Z", message: "" };
const view = { ...common, id: "4", started_at: null, ended_at: null, experiments: [], jobs: [{ id: "4.worker.1", name: "worker.1" }] };
let total = 12;
const makeLine = (number) => ({ number, whole: number, id: "4.worker.1", time: "2025-01-01T00:00:00Z", stream: "stdout", text: `line ${number}` });
serve((path, query) => {
  if (!path.endsWith("/lines")) return view;
  const [asked, count] = ["first", "count"].map((name) => Number(query.get(name)));
  const first = asked < 0 ? Math.max(0, total + asked) : asked;
  const found = { total, lines: Array.from({ length: Math.max(0, Math.min(count, total - first)) }, (_, at) => makeLine(first + at)) };
  total += printed;
  return found;
});
let printed = 0; // lines while the server answers
const wait = globalThis.setTimeout;
globalThis.setTimeout = (task, pause) => (pause < 1000 ? setImmediate(task) : wait(task, pause)); // reads on at once
const feed = makeFeed();
const main = new FakeElement("main");
document.body.append(main);
const open = async (id) => {
  await showExperiment(main, { feed, signal: new AbortController().signal, parts: ["experiments", id, "log"] });
  await settle();
};
const list = () => main.querySelectorAll("span.log-text").map((one) => one.textContent);
const print = async (count) => { total += count; feed.say({ grown: ["4"] }); await settle(); };
"""  # noqa: E501  # one definition each


def test_the_log_of_one_job_is_live() -> None:
    script = """
    await open("4.worker.1");
    await print(1);
    return list().at(-1);
    """
    assert run_page(LOG + script) == "line 12"


def test_the_focus_stays_on_a_line_when_others_come_and_when_it_is_marked() -> None:
    script = """
    await open("4");
    const link = main.querySelectorAll("a.log-number")[3];
    link.focus();
    await print(1);
    const stays = document.activeElement === link;
    link.click();
    return [stays, document.activeElement === link, link.parentNode.getAttribute("data-marked"), list().length];
    """
    assert run_page(LOG + script) == [True, True, "true", 13]


def test_the_scroll_bar_ends_following() -> None:
    """It moves neither the wheel nor a key."""
    script = """
    await open("4");
    const scroller = main.querySelector("div.log");
    scroller.clientHeight = 100;
    Object.defineProperty(scroller, "scrollHeight", { get: () => 20 * total });
    await print(100);
    const end = scroller.scrollTop;
    scroller.scrollTop = 500;
    scroller.dispatchEvent(new Event("scroll"));
    await print(100);
    return [end, scroller.scrollTop];
    """
    assert run_page(LOG + script) == [2240, 500]


def test_a_log_that_has_lost_its_end_is_not_asked_for_again_and_again() -> None:
    script = """
    let asked = 0;
    await open("4");
    const scroller = main.querySelector("div.log");
    scroller.clientHeight = 100;
    await print(988);
    total = 300;
    const answer = globalThis.fetch;
    globalThis.fetch = (url) => ((asked += 1) < 50 ? answer(url) : Promise.reject(new Error("it asks without an end")));
    scroller.scrollTop = 0;
    scroller.dispatchEvent(new Event("scroll"));
    scroller.scrollTop = 700 * 20;
    scroller.dispatchEvent(new Event("scroll"));
    for (let turns = 0; turns < 20; turns += 1) await settle();
    return asked < 5;
    """
    assert run_page(LOG + script) is True


def test_what_the_user_scrolls_past_is_not_asked_for() -> None:
    script = """
    total = 1_000_000;
    await open("4");
    const scroller = main.querySelector("div.log");
    scroller.clientHeight = 100;
    Object.defineProperty(scroller, "scrollHeight", { get: () => 8_000_000 });
    scroller.scrollTop = 7_999_900;
    let asked = 0;
    const answer = globalThis.fetch;
    globalThis.fetch = (url) => (asked += 1) && answer(url);
    for (let top = 7_000_000; top >= 0; top -= 20_000) {
      scroller.scrollTop = top;
      scroller.dispatchEvent(new Event("scroll"));
    }
    for (let turns = 0; turns < 5; turns += 1) await settle();
    return [asked < 5, list()[0]];
    """
    assert run_page(LOG + script) == [True, "line 0"]


def test_lines_that_come_while_a_long_log_opens_are_at_its_end_alone() -> None:
    script = """
    total = 1200;
    const opening = open("4");
    feed.say({ grown: ["4"] });
    await opening;
    const scroller = main.querySelector("div.log");
    scroller.dispatchEvent(new Event("scroll"));
    await settle();
    return list()[0];
    """
    assert run_page(LOG + script) == "line 0"


def test_the_end_is_shown_of_a_log_that_grows_faster_than_the_server_answers() -> None:
    script = """
    await open("4");
    const scroller = main.querySelector("div.log");
    scroller.clientHeight = 100;
    Object.defineProperty(scroller, "scrollHeight", { get: () => 20 * total });
    printed = 3000;
    const shown = [];
    for (let turns = 0; turns < 10; turns += 1) {
      feed.say({ grown: ["4"] });
      await settle();
      shown.push(main.querySelectorAll("div.log-line").every((row) => row.childNodes.length > 1));
    }
    return [shown, list().at(-1) === `line ${total - 3000 - 1}`];
    """
    assert run_page(LOG + script) == [[True] * 10, True]


def test_a_log_that_grows_without_a_pause_is_not_read_without_a_pause() -> None:
    script = """
    globalThis.setTimeout = wait;
    await open("4");
    let asked = 0;
    const answer = globalThis.fetch;
    globalThis.fetch = (url) => (asked += 1) && answer(url);
    for (let lines = 0; lines < 20; lines += 1) await print(1);
    return asked < 10;
    """
    assert run_page(LOG + script) is True


def test_lines_that_could_not_be_read_are_shown_when_the_server_answers() -> None:
    script = """
    await open("4");
    const answer = globalThis.fetch;
    globalThis.fetch = () => Promise.reject(new TypeError("the network has changed"));
    await print(1);
    for (let turns = 0; turns < 5; turns += 1) await settle();
    globalThis.fetch = answer;
    feed.pulse();
    await settle();
    return list().at(-1);
    """
    assert run_page(LOG + script) == "line 12"


def test_a_search_that_the_server_refuses_says_so() -> None:
    script = """
    await open("4");
    const input = main.querySelector("input");
    input.value = "loss";
    const refusal = { error: { message: "the text is too long" } };
    globalThis.fetch = async () => new Response(JSON.stringify(refusal), { status: 422 });
    input.dispatchEvent(new Event("input"));
    await settle();
    const shown = main.querySelectorAll("span.soft").map((one) => one.textContent);
    return [input.getAttribute("maxlength"), shown.includes("the text is too long")];
    """
    assert run_page(LOG + script) == ["200", True]
