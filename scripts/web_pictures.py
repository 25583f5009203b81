"""python -m scripts.web_pictures [FOLDER]: draws the pictures of docs/web.md from a real server in a real Chromium."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.support.rig import Rig
from tests.support.web_scene import WAIT, enter, fill_server, make_home, open_browser, show

DOCS = Path(__file__).parents[1] / "docs" / "web"
VIEWS = {
    "experiments": ("/", "row", "2"),
    "experiment": ("/experiments/4", "img", "loss"),
    "log": ("/experiments/4/log", "link", "Line 40"),
    "files": ("/experiments/4/files?path=history.csv", "table", "Content"),
    "picture": ("/experiments/4/files?path=loss.svg", "img", "Picture loss.svg"),
    "shell": ("/experiments/4/shell", "button", "Open a shell"),
    "failure": ("/experiments/3", "region", "Failure"),
    "configuration": ("/experiments/5/config", "region", "riseml.yml"),
    "explain": ("/experiments/6/explain", "region", "Hosts"),
    "set": ("/experiments/2", "region", "Parameter importance"),
    "pool": ("/pool", "region", "Queue"),
    "compare": ("/compare?of=1&of=4", "img", "loss"),
}
SIZES = {"": (1280, 800), "-phone": (375, 760), "-wide": (2560, 1300)}


def main() -> None:
    """Draw every view, dark and light; FOLDER gets all sizes, without it docs/web the usual one."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    sizes = SIZES if len(sys.argv) > 1 else {"": SIZES[""]}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="riseml-web-") as home, make_home(Path(home)) as rig:
        try:
            fill_server(rig)
            with open_browser() as browser:
                for scheme in ("light", "dark"):
                    _draw_views(browser, rig, folder, scheme, sizes)
        finally:
            for name in ("4", "5", "6"):
                rig.post(f"/v1/experiments/{name}/kill")
                rig.wait_closed(name)


def _draw_views(browser: Browser, rig: Rig, folder: Path, scheme: str, sizes: dict[str, tuple[int, int]]) -> None:
    page = enter(browser, rig, color_scheme=scheme)
    for name, (path, role, text) in VIEWS.items():
        show(page, path)
        if name == "shell":
            _use_shell(page)
        for suffix, (width, height) in sizes.items():
            page.set_viewport_size({"width": width, "height": height})
            heading = page.get_by_role(role, name=text).first  # type: ignore[arg-type]  # one of its names of roles
            expect(heading).to_be_visible(timeout=WAIT)
            expect(page.locator(".plot:empty")).to_have_count(0, timeout=WAIT)
            page.screenshot(path=folder / f"{name}-{scheme}{suffix}.png")
    page.context.close()


def _use_shell(page: Page) -> None:
    """Open a shell, and let it show something. What the shell of this machine shows by itself is cleared."""
    page.get_by_role("button", name="Open a shell").click()
    expect(page.get_by_role("status").filter(has_text="Open in")).to_be_visible(timeout=WAIT)
    page.keyboard.type("PS1='$ '; clear\n")
    page.keyboard.type("tail -n 3 $OUTPUT_DIR/history.csv\n")
    expect(page.locator(".xterm-rows")).to_contain_text("40,0.0", timeout=WAIT)


if __name__ == "__main__":
    main()
