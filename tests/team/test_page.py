"""The page of a team's server in a real Chromium, over TLS: who is let in, until when, and what each user sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from riseml.base.roles import Role
from riseml.base.states import State, Wanted
from riseml.server.clock import now
from tests.support.team_page import TeamPage, serve_team
from tests.support.waiting import DEADLINE, wait_for
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
    wait_for("the session's end in the store", lambda: team.sessions.list_open(now(), "ann") == [], DEADLINE)
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


@pytest.fixture(scope="module")
def shared(team: TeamPage) -> TeamPage:
    """The server with experiments: ann.1 and paul.2 are theirs alone, ann sees paul.1 in the project vision."""
    projects = team.application.services.stores.team_projects
    projects.add_project("vision", now())
    projects.put_member("vision", "paul", Role.MEMBER)
    projects.put_member("vision", "ann", Role.VIEWER)
    team.add_experiment("paul", "vision")
    team.add_experiment("paul")
    team.add_experiment("ann")
    return team


def list_rows(page: Page) -> Locator:
    return page.locator("tbody tr[data-id]")


def test_an_address_opens_after_the_login_and_shows_what_its_reader_may_do(shared: TeamPage, browser: Browser) -> None:
    """Both users have an experiment 1: what the page offers for paul.1 must not be done to the own one."""
    page = shared.open(browser, "/experiments/paul.1")
    log_in(page, shared.keys["ann"])
    expect(page.get_by_role("heading", name="Experiment paul.1")).to_be_visible()
    expect(page.get_by_text("of paul, in project vision")).to_be_visible()
    for name in ("Kill", "Star", "Archive", "Describe"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name="Kill")).to_have_attribute(
        "title", "paul.1 is paul's: paul, a maintainer of vision or an admin may do this"
    )
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("textbox", name="Link")).to_have_value(f"{shared.origin}/experiments/paul.1")
    expect(page.get_by_role("dialog")).to_contain_text("the members and viewers of project vision")
    assert find_barriers(page) == []
    page.keyboard.press("Escape")
    for tab in ("Log", "Files", "Configuration", "Explain"):
        page.get_by_role("link", name=tab, exact=True).click()
        assert page.url.startswith(f"{shared.origin}/experiments/paul.1/")
        expect(page.get_by_role("heading", name="Experiment paul.1")).to_be_visible()
    show(page, "/experiments/ann.1")
    expect(page.get_by_role("heading", name="Experiment 1")).to_contain_text("Experiment 1")
    expect(page.get_by_role("button", name="Kill")).to_be_enabled()
    absent = {}
    for name in ("paul.2", "paul.77"):
        show(page, f"/experiments/{name}")
        expect(page.get_by_role("heading", name=f"No experiment {name}")).to_be_visible()
        absent[name] = page.get_by_role("alert").inner_text().replace(name, "ID")
        assert find_barriers(page) == []
    assert absent["paul.2"] == absent["paul.77"], "what is hidden reads as what does not exist"
    page.context.close()


def test_the_list_shows_ones_own_those_of_a_project_or_all(shared: TeamPage, browser: Browser) -> None:
    page = shared.open(browser)
    log_in(page, shared.keys["ann"])
    rows = list_rows(page)
    choice = page.get_by_label("Whose experiments")
    expect(rows).to_have_count(1)
    expect(rows.first).to_have_attribute("data-id", "1")
    choice.select_option("all that I see")
    expect(rows).to_have_count(2)
    assert page.url.endswith("?of=all")
    shared.set_state("paul", 1, State.RUNNING)
    expect(page.locator("tr[data-id='paul.1']")).to_contain_text("running")
    expect(page.get_by_role("columnheader", name="user")).to_be_visible()
    page.get_by_label("Group by", exact=True).select_option("user")
    expect(page.locator("tr.group").filter(has_text="paul")).to_contain_text("1 experiment")
    page.get_by_label("Group by", exact=True).select_option("set")
    assert find_barriers(page) == []
    for name in ("1", "paul.1"):
        page.get_by_label(f"Select {name}", exact=True).click()
    expect(page.get_by_role("button", name="Kill")).to_be_disabled()
    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    expect(page.get_by_role("link", name="paul.1")).to_be_visible()
    show(page, "/?of=project%3Avision")
    expect(choice).to_have_value("project:vision")
    expect(rows).to_have_count(1)
    expect(rows.first).to_have_attribute("data-id", "paul.1")
    show(page, "/?of=all&filter=user%3Aann")
    expect(rows).to_have_count(1)
    expect(rows.first).to_have_attribute("data-id", "1")
    assert "paul.2" not in page.content()
    page.context.close()


def test_an_admin_sees_and_ends_what_users_have(shared: TeamPage, browser: Browser) -> None:
    page = shared.open(browser, "/?of=all")
    log_in(page, shared.keys["root-of-team"])
    expect(list_rows(page)).to_have_count(3)
    page.get_by_role("link", name="paul.2").click()
    expect(page.get_by_role("heading", name="Experiment paul.2")).to_be_visible()
    page.get_by_role("button", name="Kill").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert [shared.find("paul", number).wanted for number in (1, 2)] == [Wanted.RUN, Wanted.KILL]
    assert shared.find("ann", 1).wanted is Wanted.RUN
    page.context.close()
