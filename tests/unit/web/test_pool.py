"""The pool of the web page."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_the_use_is_that_of_the_hours_that_the_user_has_chosen() -> None:
    """The answer about the hours that were chosen before comes last."""
    script = """
    const { showPool } = await import("./pool.js");
    const host = { name: "h", state: "up", drained: false, jobs: [], engine: "", message: "", cpus_used: 0, cpus: 2, mem_mib_used: 0, mem_mib: 512, gpus: 0 };
    const amounts = { name: "h", cpus: 2, mem_mib: 512, gpus: 0, cpu: [0], cpus_held: [0], mem_used: [0], gpu: [0], gpus_held: [0] };
    const years = { 6: 2023, 24: 2024 };
    let answerLate = () => {};
    serve(async (path, query) => {
      const hours = query.get("hours");
      if (path === "/pool") return { hosts: [host], file: "", trouble: "" };
      if (path === "/pool/queue") return { length: 0, waiting: [] };
      if (hours === "6") await new Promise((resolve) => (answerLate = resolve));
      return { left_out: 0, time: [Date.UTC(years[hours], 5) / 1000], hosts: [amounts] };
    });
    const main = new FakeElement("main");
    document.body.append(main);
    const select = () => main.querySelector("select");
    const done = showPool(main, { feed: makeFeed(), signal: new AbortController().signal, parts: [] });
    select().value = "6";
    await settle();
    select().value = "24";
    select().dispatchEvent(new Event("change"));
    await settle();
    answerLate();
    await done;
    await settle();
    return main.querySelectorAll("h3").map((one) => one.textContent).filter((text) => text.startsWith("What its"));
    """  # noqa: E501  # records of the API
    [title] = run_page(script)
    assert "2024" in title


def test_a_pool_that_could_not_be_read_is_shown_when_the_server_answers() -> None:
    script = """
    const { showPool } = await import("./pool.js");
    globalThis.setTimeout = (task) => setImmediate(task); // tries again at once
    const pool = { hosts: [], file: "pool.yml", trouble: "", length: 0, waiting: [] };
    serve((path) => (path === "/pool/usage" ? { left_out: 0, time: [], hosts: [] } : pool));
    const answer = globalThis.fetch;
    globalThis.fetch = () => Promise.reject(new TypeError("the network has changed"));
    const main = new FakeElement("main");
    document.body.append(main);
    const feed = makeFeed();
    await showPool(main, { feed, signal: new AbortController().signal, parts: [] });
    const problem = main.querySelector("p.soft").textContent;
    globalThis.fetch = answer;
    feed.pulse();
    await settle();
    return [problem.slice(0, 27), main.querySelector("p.soft").textContent];
    """
    assert run_page(script) == ["The server does not answer.", "from pool.yml"]


def test_the_use_is_read_again_after_the_clock_of_the_browser_was_set_back() -> None:
    script = """
    const { showPool } = await import("./pool.js");
    let [clock, now, read] = [1e12, 0, 0];
    Date.now = () => clock;
    performance.now = () => now;
    const pool = { hosts: [], file: "", trouble: "", length: 0, waiting: [] };
    serve((path) => (path === "/pool/usage" ? (read += 1) && { left_out: 0, time: [], hosts: [] } : pool));
    const main = new FakeElement("main");
    const feed = makeFeed();
    await showPool(main, { feed, signal: new AbortController().signal, parts: [] });
    [clock, now] = [clock - 3_600_000, now + 61_000];
    feed.say({ grown: ["4"] });
    await settle();
    return read;
    """
    assert run_page(script) == 2
