"""Values as the web page shows them."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_a_file_with_an_impossible_time_is_listed() -> None:
    """A job can give its files any time."""
    script = """
    const { showFiles } = await import("./files.js");
    const file = { path: "a.txt", kind: "file", size: 3, mtime: 9e24, target: null, etag: "" };
    serve(() => ({ at: { kind: "folder" }, entries: [file], next: null }));
    const place = new FakeElement("div");
    showFiles({ view: { id: "4" }, place, feed: makeFeed(), signal: new AbortController().signal });
    await settle();
    return place.querySelectorAll("tr").at(-1).textContent;
    """
    assert run_page(script) == "a.txt3 bytes"


def test_the_use_of_the_last_days_names_the_day() -> None:
    script = """
    const { makeUsage } = await import("./usage.js");
    const host = { cpus: 2, mem_mib: 512, gpus: 0, cpu: [1], cpus_held: [1], mem_used: [1], gpu: [0], gpus_held: [0] };
    return makeUsage(host, { time: [Date.UTC(2025, 0, 15, 12) / 1000] }).querySelector("h3").textContent;
    """
    assert "2025" in run_page(script)


def test_ages_count_by_the_clock_of_the_server() -> None:
    """The browser is on another machine, whose clock is an hour ahead, or two hours late."""
    script = """
    const { get } = await import("./api.js");
    const { formatAge } = await import("./format.js");
    const { makeDuration } = await import("./parts.js");
    const hours = 3_600_000;
    const shown = [];
    for (const [ahead, since] of [[-1, 65_000], [2, 65_000], [0, 65_000], [0.0005, 65_000]]) {
      const date = new Date(Date.now() + ahead * hours);
      serve(() => new Response("{}", { headers: { Date: date.toUTCString() } }));
      await get("/server");
      const start = new Date(date.getTime() - since).toISOString();
      shown.push([formatAge(start).slice(0, 5), makeDuration(start, null).textContent.slice(0, 5)]);
    }
    return shown;
    """
    assert run_page(script) == [["1 min", "1 min"]] * 4


def test_the_use_of_the_last_hour_is_asked_for_by_the_clock_of_the_server() -> None:
    """A browser whose clock is hours ahead would ask for what is still to come."""
    script = """
    const { get } = await import("./api.js");
    const { ResourcePanel } = await import("./resources.js");
    let since = "";
    serve((path, query) => {
      since = query.get("since") ?? "";
      return new Response('{"jobs": []}', { headers: { Date: "Wed, 15 Jan 2025 12:00:00 GMT" } });
    });
    await get("/server");
    const view = { id: "4", state: "PENDING", created_at: "2025-01-15T02:00:00Z" };
    const panel = new ResourcePanel(new FakeElement("div"), { view, feed: makeFeed(), signal: new AbortController().signal });
    await panel.readAll();
    return since.slice(0, 13);
    """  # noqa: E501  # one call each
    assert run_page(script) == "2025-01-15T11"
