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
