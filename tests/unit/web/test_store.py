"""The list of all experiments that the web page keeps: no change is lost, whatever is read meanwhile."""

from __future__ import annotations

from tests.support.javascript import run_page

LIST = """
const { ExperimentList } = await import("./store.js");
const states = new Map([[1, "FINISHED"], [2, "RUNNING"]]);
const show = (number) => ({ id: String(number), state: states.get(number), experiments: [], jobs: [], metrics: [] });
const page = (query) => [...states.keys()].filter((one) => one < (Number(query.get("before")) || 99)).sort().reverse();
const feed = makeFeed();
const list = new ExperimentList(feed);
const signal = new AbortController().signal;
const read = () => Object.fromEntries([...list.views].map(([number, view]) => [number, view.state]));
let isDown = false;
let afterPage = () => {};
serve(async (path, query) => {
  if (isDown) return undefined;
  const addMetrics = (id) => ({ id, metrics: [{ name: "loss" }] });
  if (path === "/results") return { experiments: query.getAll("of").map(addMetrics) };
  if (path !== "/experiments") return show(Number(path.split("/")[2]));
  const [number] = page(query);
  const found = { experiments: number ? [show(number)] : [] };
  await afterPage(number);
  return found;
});
"""


def test_what_changes_while_the_list_is_read_is_in_it() -> None:
    """The page of the newest experiments is read first: then one of them ends, and another one is submitted."""
    change = """
    afterPage = async (number) => {
      if (number !== 2) return;
      states.set(2, "FINISHED").set(3, "PENDING");
      feed.say({ changed: ["2", "3"] });
      await settle();
    };
    await list.start(signal);
    await settle();
    return read();
    """
    assert run_page(LIST + change) == {"1": "FINISHED", "2": "FINISHED", "3": "PENDING"}


def test_an_older_reading_of_the_list_does_not_replace_a_newer_one() -> None:
    change = """
    let isFirst = true;
    afterPage = async (number) => {
      if (number !== 2 || !isFirst) return;
      isFirst = false;
      states.set(2, "FINISHED");
      feed.say({ reset: true });
      await settle();
      await settle();
    };
    await list.start(signal);
    await settle();
    return read();
    """
    assert run_page(LIST + change) == {"1": "FINISHED", "2": "FINISHED"}


def test_what_could_not_be_read_is_read_when_the_server_says_something_again() -> None:
    change = """
    await list.start(signal);
    isDown = true;
    states.set(2, "FINISHED");
    feed.say({ changed: ["2"] });
    list.want(["1"]);
    await new Promise((resolve) => (list.fetchMetrics().catch(resolve)));
    await settle();
    isDown = false;
    feed.pulse();
    await settle();
    const known = read();
    await list.fetchMetrics();
    return [known, list.metrics.get("1")];
    """
    assert run_page(LIST + change) == [{"1": "FINISHED", "2": "FINISHED"}, [{"name": "loss"}]]


def test_a_list_that_could_not_be_read_is_read_when_the_server_says_something_again() -> None:
    change = """
    isDown = true;
    const refusal = await list.start(signal).catch((error) => error.message);
    isDown = false;
    feed.pulse();
    await settle();
    return [refusal, read()];
    """
    assert run_page(LIST + change) == ["The server answered 500.", {"1": "FINISHED", "2": "RUNNING"}]


def test_a_filter_whose_values_could_not_be_read_gets_them_when_the_server_says_something_again() -> None:
    change = """
    await list.start(signal);
    isDown = true;
    list.follow(["loss"]);
    await settle();
    serve((path) => (path === "/metrics/names" ? { names: ["loss"] } : { metric: "loss", values: { 1: 0.5 } }));
    feed.pulse();
    await settle();
    return list.lasts.get("loss")?.get("1") ?? null;
    """
    assert run_page(LIST + change) == 0.5


def test_many_changes_are_read_without_all_experiments_and_however_old_they_are() -> None:
    """An old experiment ends among 20,000, and 30 others at its side."""
    change = """
    let sent = 0;
    serve((path, query) => {
      const [limit, before] = ["limit", "before"].map((name) => Number(query.get(name)));
      const last = Math.min(20_000, (before || 20_001) - 1);
      const experiments = Array.from({ length: Math.min(limit, last) }, (_, at) => ({ id: String(last - at), state: "FINISHED" }));
      sent += experiments.length;
      return { experiments };
    });
    list.signal = signal;
    await list.readNumbers(Array.from({ length: 30 }, (_, at) => 3000 + 20 * at));
    return [sent, list.views.size, [3000, 3580].every((number) => list.views.has(number))];
    """  # noqa: E501  # one answer
    assert run_page(LIST + change) == [581, 581, True]
