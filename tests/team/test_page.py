"""The page of a team's server in a real Chromium, over TLS: who is let in, until when, and what each user sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from riseml.server.clock import now
from tests.support.team_page import TeamPage, serve_team
from tests.support.web_scene import WAIT, find_barriers, open_browser, show

expect.set_options(timeout=WAIT)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamPage]:
    with serve_team(tmp_path_factory.mktemp("team")) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as made:
        yield made


def log_in(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Log in with a key").click()
    page.locator("#connection[data-connection=live]").wait_for(state="attached")  # hidden on a narrow screen


@pytest.mark.parametrize("width", [390, 1280])
def test_a_user_logs_in_with_a_key_and_out_again(team: TeamPage, browser: Browser, width: int) -> None:
    page = team.open(browser, "/pool", width=width)
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert find_barriers(page) == []
    page.get_by_label("API key").fill("riseml_wrong")
    page.get_by_role("button", name="Log in with a key").click()
    expect(page.get_by_role("alert")).to_contain_text("this key is not valid")
    log_in(page, team.keys["ann"])
    assert page.url == f"{team.origin}/pool", "the page that the user has asked for"
    cookies = page.context.cookies()
    assert [(one["name"], one["httpOnly"], one["secure"], one["sameSite"]) for one in cookies] == [
        ("__Host-riseml", True, True, "Strict")
    ]
    assert team.keys["ann"] not in str(page.evaluate("JSON.stringify(localStorage)")), "the browser keeps no key"
    page.get_by_role("link", name="Account").click()
    expect(page.get_by_role("heading", name="Sessions of ann")).to_be_visible()
    expect(page.get_by_role("row", name="browser, this one")).to_have_count(1)
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off at the side"
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert team.sessions.list_open(now(), "ann") == []
    page.context.close()


def test_a_revoked_session_ends_an_open_page(team: TeamPage, browser: Browser) -> None:
    page = team.open(browser)
    log_in(page, team.keys["ann"])
    other = team.open(browser)
    log_in(other, team.keys["ann"])
    show(other, "/sessions")
    rows = other.get_by_role("button", name="End session")
    expect(rows).to_have_count(2)
    row = other.get_by_role("row").filter(has_not_text="this one").filter(has_text="browser")
    row.get_by_role("button", name="End session").click()
    expect(rows).to_have_count(1)
    expect(page.get_by_text("Your session has ended.")).to_be_visible()
    expect(other.locator("#connection[data-connection=live]")).to_be_visible()
    log_in(page, team.keys["ann"])
    page.context.close()
    other.context.close()


def test_an_experiment_of_another_user_is_never_taken_for_one_of_ones_own(team: TeamPage, browser: Browser) -> None:
    """Both users may have an experiment 1: what the page offered for paul.1 would be done to the own one."""
    page = team.open(browser, "/experiments/paul.1")
    log_in(page, team.keys["root-of-team"])
    expect(page.get_by_text("this one belongs to another user")).to_be_visible()
    expect(page.get_by_text("riseml show paul.1")).to_be_visible()
    expect(page.get_by_role("button", name="Kill")).to_have_count(0)
    assert find_barriers(page) == []
    show(page, "/experiments/root-of-team.1")
    expect(page.get_by_role("alert")).to_contain_text("there is no experiment 1")
    page.context.close()
