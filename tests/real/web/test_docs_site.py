"""The site of `make docs` in a browser, from the disk: it fits each width, and its search works without a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from scripts.docs_site.__main__ import ROOT
from scripts.docs_site.building import build_site
from tests.support.web_scene import WAIT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    build_site(ROOT, folder)
    return folder


@pytest.mark.parametrize("width", [1440, 820, 390])
def test_pages_fit_the_window_and_load_nothing_from_elsewhere(width: int, site: Path, browser: Browser) -> None:
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        for name in ("index", "docs/getting-started", "docs/riseml-yml", "docs/reliability"):
            page.goto((site / f"{name}.html").as_uri())
            expect(page.locator("h1")).to_be_visible(timeout=WAIT)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
        assert [url for url in requests if not url.startswith(site.as_uri())] == []


def test_the_search_works_from_the_disk(site: Path, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.goto((site / "docs/jobs.html").as_uri())
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("checkpoint")
        expect(page.get_by_text("train.save", exact=True)).to_be_visible(timeout=WAIT)
