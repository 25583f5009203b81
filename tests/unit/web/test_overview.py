"""The overview of one experiment: it shows what is, while the experiment runs and after its end."""

from __future__ import annotations

from tests.support.javascript import run_page

OVERVIEW = """
const { showExperiment } = await import("./experiment.js");
let now = Date.parse("2025-01-01T10:00:00Z");
Date.now = () => now;
performance.now = () => now;
const common = { project: "toaster", type: "experiment", message: "", parameters: {}, experiments: [], last_lines: [] };
const job = { id: "4.master", name: "master", host: "h", state: "RUNNING", message: "", cpus: 1, mem_mib: 512, gpus: 0, attempt: 1 };
const times = { created_at: "2025-01-01T02:00:00Z", started_at: "2025-01-01T02:00:00Z", ended_at: null };
const view = { ...common, ...times, id: "4", state: "RUNNING", jobs: [{ ...job, started_at: times.started_at, ended_at: null }] };
const event = (state, hour) => ({ id: "4.master", state, time: `2025-01-01T${hour}:00:00Z` });
const events = [event("RUNNING", "02"), event("FAILED", "04"), event("RUNNING", "05")];
const amounts = Object.fromEntries(["mem_used", "gpu", "gpu_mem_used", "net_in", "net_out", "disk_read", "disk_write"].map((name) => [name, [null]]));
const asked = [];
serve((path, query) => {
  if (path.endsWith("/samples")) asked.push(query.get("since"));
  if (path.endsWith("/samples")) return { jobs: [{ id: "4.master", time: [0], cpu: [50], ...amounts }] };
  if (path.endsWith("/stragglers")) return { stragglers: [{ job: "4.master", kind: "behind", text: "4.master is furthest behind" }] };
  if (path.endsWith("/events")) return { events };
  return path.endsWith("/metrics") ? { experiments: [] } : view;
});
const feed = makeFeed();
const main = new FakeElement("main");
document.body.append(main);
await showExperiment(main, { feed, signal: new AbortController().signal, parts: ["experiments", "4"] });
await settle();
"""  # noqa: E501  # one definition each


def test_the_end_takes_the_warnings_away_and_shows_the_use_of_the_whole_life() -> None:
    script = """
    const former = main.querySelectorAll("p.straggler").length;
    now += 10_000;
    view.state = "FINISHED";
    view.ended_at = "2025-01-01T10:00:05Z";
    feed.say({ changed: ["4"] });
    await settle();
    now += 10_000;
    feed.pulse();
    await settle();
    return [former, main.querySelectorAll("p.straggler").length, asked.at(0), asked.at(-1)];
    """
    assert run_page(OVERVIEW + script) == [1, 0, "2025-01-01T09:00:00.000Z", "2025-01-01T02:00:00.000Z"]


def test_the_life_of_a_job_that_runs_goes_on() -> None:
    script = """
    const read = () => main.querySelectorAll("rect").at(-1).textContent;
    const former = read();
    now += 3_600_000;
    feed.pulse();
    return [former, read()];
    """
    assert run_page(OVERVIEW + script) == ["master: running for 5 h", "master: running for 6 h"]


def test_a_job_that_runs_again_has_no_end() -> None:
    assert run_page(f'{OVERVIEW} return main.querySelectorAll("circle").length;') == 0


def test_a_training_that_prints_without_a_pause_is_not_read_without_a_pause() -> None:
    script = """
    let read = 0;
    const answer = globalThis.fetch;
    globalThis.fetch = (url) => {
      if (url.pathname.endsWith("/metrics")) read += 1;
      return answer(url);
    };
    for (let lines = 0; lines < 20; lines += 1) {
      feed.say({ grown: ["4"] });
      await settle();
    }
    return read < 10;
    """
    assert run_page(OVERVIEW + script) is True


def test_an_end_that_could_not_be_read_is_shown_when_the_server_answers() -> None:
    script = """
    globalThis.setTimeout = (task) => setImmediate(task); // tries again at once
    view.state = "FINISHED";
    const answer = globalThis.fetch;
    globalThis.fetch = () => Promise.reject(new TypeError("the network has changed"));
    feed.say({ changed: ["4"] });
    for (let turns = 0; turns < 5; turns += 1) await settle();
    const former = main.querySelector("p.sentence").textContent;
    globalThis.fetch = answer;
    feed.pulse();
    await settle();
    return [former, main.querySelector("p.sentence").textContent];
    """
    assert run_page(OVERVIEW + script) == ["running1 job runs on h.", "finished"]


def test_parts_that_could_not_be_read_are_shown_when_the_server_answers() -> None:
    script = """
    const answer = globalThis.fetch;
    const isLost = (url) => /\\/(events|metrics)$/.test(url.pathname);
    globalThis.fetch = (url) => (isLost(url) ? Promise.reject(new TypeError("the network has changed")) : answer(url));
    events.push(event("FINISHED", "06"));
    feed.say({ changed: ["4"] });
    for (let turns = 0; turns < 5; turns += 1) await settle();
    const former = main.querySelectorAll("circle").length;
    const read = [];
    globalThis.fetch = (url) => read.push(url.pathname.split("/").at(-1)) && answer(url);
    feed.pulse();
    await settle();
    return [former, main.querySelectorAll("circle").length, read.includes("metrics")];
    """
    assert run_page(f"globalThis.setTimeout = (task) => setImmediate(task);{OVERVIEW}{script}") == [0, 1, True]


def test_files_that_were_not_kept_are_named() -> None:
    script = """
    view.written = { sentences: ["2 new files (5 MiB) were not kept: model.pt, runs/..."] };
    feed.say({ changed: ["4"] });
    await settle();
    return main.querySelectorAll("p").some((line) => line.textContent === view.written.sentences[0]);
    """
    assert run_page(OVERVIEW + script) is True
