"""The files of an experiment, whose server does not answer for a while."""

from __future__ import annotations

from tests.support.javascript import run_page

FILES = """
const { showFiles } = await import("./files.js");
const file = { path: "long.log", kind: "file", size: 400_000, mtime: 0, target: null, etag: "" };
let isDown = false;
serve((path, query) => {
  if (isDown) return undefined;
  if (path === "/files/content") return new Response("x".repeat(400_000), { headers: { "X-Riseml-Size": "400000" } });
  const at = query.get("path") ? file : { kind: "folder" };
  return { at, entries: [file], next: query.get("after") ? null : "long.log" };
});
const place = new FakeElement("div");
const open = async () => {
  showFiles({ view: { id: "4" }, place, feed: makeFeed(), signal: new AbortController().signal });
  await settle();
};
const press = async (label) => {
  const button = place.querySelectorAll("button").find((one) => one.textContent === label);
  button.disabled = false;
  button.click();
  await settle();
  return [button.disabled, place.querySelectorAll("div.problem").length];
};
"""


def test_more_files_can_be_asked_for_again() -> None:
    script = """
    await open();
    isDown = true;
    const refused = await press("Show more");
    isDown = false;
    const [, problems] = await press("Show more");
    return [refused, problems, place.querySelectorAll("tr").length];
    """
    assert run_page(FILES + script) == [[False, 1], 0, 3]


def test_the_end_of_a_file_can_be_asked_for_again() -> None:
    script = """
    location = new URL("/experiments/4/files?path=long.log", location);
    await open();
    isDown = true;
    return await press("Show its end");
    """
    assert run_page(FILES + script) == [False, 1]


def test_the_end_of_a_file_that_grows_is_that_of_now() -> None:
    script = """
    location = new URL("/experiments/4/files?path=long.log", location);
    await open();
    serve((path, query) => {
      const text = ("x".repeat(400_000) + "y".repeat(400_000) + "the newest line").slice(Number(query.get("start")));
      return new Response(text, { headers: { "X-Riseml-Size": "800015" } });
    });
    await press("Show its end");
    return [place.querySelector("pre").textContent.slice(-15), place.querySelector("div.soft").textContent];
    """
    assert run_page(FILES + script) == ["the newest line", "Up to 256 KiB from its end of 781.3 KiB."]
