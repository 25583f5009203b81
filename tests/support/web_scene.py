"""What the web page shows in its tests and pictures: a server with a home of its own, whose experiments do a little of
everything, and a browser that is let in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Error, Page, Route, sync_playwright
from playwright.sync_api import TimeoutError as PageTimeout

from tests.support.rig import BASE, Rig, gang, single
from tests.support.waiting import DEADLINE

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()
"""What finds, in a page, what some users could not use."""

_RULES: dict[Literal["light", "dark"], str] = {"light": "", "dark": "runOnly: ['cat.color']"}
"""The rules of axe that are tried in each scheme: the two differ in colours alone."""

_DROPPED = ("ERR_NETWORK_CHANGED", "ERR_ABORTED", "is interrupted by another navigation")
"""What Playwright says when Chromium has dropped a page that it loads. The last one: it drops the page before, or the
page itself loads again because a script of it was dropped (`boot.js`)."""

CHROMIUM = "/usr/bin/chromium"
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WAIT = 1000 * DEADLINE  # milliseconds that a test waits for the page
_LOAD = 15_000  # milliseconds after which a page that shows nothing is asked for again; each time it gets more

_TRAIN = """
mkdir -p "$OUTPUT_DIR/checkpoints"; echo step,loss,accuracy > "$OUTPUT_DIR/history.csv"; points=
i=0; while [ $i -lt 40 ]; do i=$((i+1))
printf 'epoch %s \\033[32mloss\\033[0m 0.%03d\\n' $i $((900 / i + i % 7))
printf 'riseml.report {"step": %s, "loss": 0.%03d, "accuracy": 0.%03d}\\n' $i $((900 / i + i % 7)) $((900 - 700 / i))
printf '%s,0.%03d,0.%03d\\n' $i $((900 / i + i % 7)) $((900 - 700 / i)) >> "$OUTPUT_DIR/history.csv"
points="$points $((i * 16)),$((900 / i / 3))"
done
printf '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 320"><polyline points="%s"\
 fill="none" stroke="#2f4fd0" stroke-width="4" transform="matrix(1 0 0 -1 0 310)"/></svg>' "$points" > \
"$OUTPUT_DIR/loss.svg"
head -c 5000 /dev/zero > "$OUTPUT_DIR/checkpoints/last.npz"
"""
_TRIAL = """
i=0; while [ $i -lt 20 ]; do i=$((i+1))
printf 'riseml.report {"step": %s, "loss": 0.%03d}\\n' $i $((900 / i + {{batch}} / 16))
done
printf 'riseml.report {"step": 20, "score": %s}\\n' {{lr}}
"""
_BROKEN = """
echo loading data
echo 'Traceback (most recent call last):' >&2
echo '  File "train.py", line 3, in <module>' >&2
echo "ModuleNotFoundError: No module named 'pandas'" >&2
exit 1
"""


def make_search() -> str:
    """Return a search of twelve trials."""
    train: dict[str, Any] = {
        "image": BASE,
        "run": _TRIAL,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"lr": {"uniform": {"min": 0, "max": 1}}, "batch": [16, 64]},
        "search": {"method": "random", "trials": 12, "metric": "score", "goal": "maximize", "seed": 7},
    }
    return json.dumps({"project": "sweep", "train": train})


def fill_server(rig: Rig) -> None:
    """Submit: 1 trains and has ended, 2 is a search, 3 fails, 4 prints without end, 5 is distributed, 6 waits."""
    rig.submit(single(_TRAIN, parameters={"lr": 0.1}))
    rig.submit(make_search())
    rig.submit(single(_BROKEN))
    rig.wait_closed("2")
    rig.wait_closed("3")
    rig.wait_closed("1")
    endless = 'while :; do [ ! -e "$OUTPUT_DIR/go" ] || { rm "$OUTPUT_DIR/go"; echo "a new line"; }; sleep 0.1; done'
    rig.submit(single(f"{_TRAIN}\n{endless}"))
    rig.submit(gang({"master": "echo hello; exec sleep 3600"}))
    rig.wait_state("4", "RUNNING")
    rig.wait_state("5", "RUNNING")
    cores = rig.get("/v1/pool")["hosts"][0]["cpus"]
    rig.submit(single("true", resources={"cpus": cores - 0.2, "mem": "64MiB"}))
    rig.wait_state("6", "PENDING")


def open_door(rig: Rig) -> str:
    """Return a fresh address that lets one browser in."""
    address: str = rig.post("/v1/web", {}).json()["url"]
    return address


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A Chromium of its own, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        yield browser
        browser.close()


def enter(browser: Browser, rig: Rig, **options: Any) -> Page:
    """Return a page in a new context of the browser, which the server has let in."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    context.set_default_timeout(WAIT)
    page = context.new_page()
    go(page, lambda: open_door(rig))
    return page


def go(page: Page, find_address: Callable[[], str]) -> None:
    """Open an address and wait until the page shows something. Containers that start elsewhere on the machine change
    its networks, and Chromium drops what it loads then, be it the page or its first script: it is asked for again.
    """
    for number in range(1, 10):
        try:
            page.goto(find_address(), timeout=number * _LOAD)
            page.locator("main > *").first.wait_for(state="attached", timeout=number * _LOAD)
            return
        except PageTimeout:
            continue
        except Error as error:
            if not any(reason in error.message for reason in _DROPPED):
                raise
    raise AssertionError(f"the page at {page.url} shows nothing")


def intercept_first(page: Page, url: str, answer: Callable[[Route], None]) -> None:
    """Let a function answer the first request to a URL; the server answers the later ones.

    The route stays: Chromium never answers a request that comes while Playwright removes a route, as with `times=1`.
    """
    waiting = [answer]
    page.route(url, lambda route: waiting.pop()(route) if waiting else route.continue_())


def show(page: Page, path: str) -> None:
    """Open a view by its address, as a link from outside does."""
    parts = urlsplit(page.url)
    go(page, lambda: f"{parts.scheme}://{parts.netloc}{path}")


def find_barriers(page: Page, within: str = "") -> list[tuple[str, str, list[str]]]:
    """Return what axe finds in a view, or in a part of it, in light and dark: the scheme, the rule, and the first
    elements."""
    page.evaluate(AXE)
    barriers: list[tuple[str, str, list[str]]] = []
    for scheme, rules in _RULES.items():
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # no colour is still on its way
        page.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
        found = page.evaluate(
            f"axe.run({repr(within) if within else 'document'}, {{resultTypes: ['violations'], {rules}}})"
        )
        for one in found["violations"]:
            barriers.append((scheme, one["id"], [node["html"] for node in one["nodes"]][:3]))
    return barriers


def make_home(folder: Path) -> Rig:
    """Return a server that is not started yet."""
    return Rig(folder / "home", None, RISEML_IDLE_AFTER="3600")
