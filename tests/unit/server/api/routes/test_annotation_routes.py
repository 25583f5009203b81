"""The routes of names, tags and notes, and the ID behind a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.callers import ME
from tests.unit.server.api.conftest import say

Change = Callable[..., httpx.Response]
NOTHING = {"name": "", "tags": [], "note": "", "starred": False, "archived": False}


@pytest.fixture
def change(client: httpx.Client) -> Iterator[Change]:
    """Change what is said about an experiment; at the end nothing is said."""

    def post(identity: str, /, **request: object) -> httpx.Response:
        return client.post(f"/v1/experiments/{identity}/annotation", json=request)

    yield post
    for name in "1", "2", "2.1", "3":
        tags = client.get(f"/v1/experiments/{name}").json()["tags"]
        cleared = post(name, name="", note="", starred=False, archived=False, remove_tags=tags)
        assert cleared.json() == {"id": name, **NOTHING}


def test_what_is_said_is_in_every_answer_and_wakes_the_feed(client: httpx.Client, change: Change) -> None:
    note = "# lr\r\n\t<b>\x1b[2J \u202e\u00e9"
    said = {"name": "warm up", "tags": ["baseline", "gr\u00f6\u00dfe"], "note": note, "starred": True, "archived": True}
    with client.stream("GET", "/v1/changes") as feed:
        lines = feed.iter_lines()
        while not next(lines).startswith("data:"):
            pass
        answer = change("1", name=" warm up ", add_tags=["baseline", "gro\u0308\u00dfe"], note=note, starred=True)
        assert answer.json() == {"id": "1", **said, "archived": False}
        assert change("1", archived=True).json() == {"id": "1", **said}
        changed = next(line for line in lines if line.startswith("data:"))
        assert '"changed": ["1"]' in changed
    change("2", add_tags=["whole"])
    change("2.1", add_tags=["part"])
    view = client.get("/v1/experiments/1").json()
    assert {key: view[key] for key in said} == said
    capsule = client.get("/v1/experiments/1/capsule").json()["capsule"]
    assert [capsule[key] for key in ("name", "tags", "note")] == ["warm up", ["baseline", "gr\u00f6\u00dfe"], note]
    member = client.get("/v1/experiments/2.1/capsule").json()["capsule"]
    assert member["tags"] == ["part", "whole"]
    whole = client.get("/v1/experiments/2").json()
    assert [whole["tags"], *(member["tags"] for member in whole["experiments"])] == [["whole"], ["part"], []]
    listed = client.get("/v1/experiments", params={"all": "true", "archived": "shown"}).json()["experiments"]
    assert {key: listed[0][key] for key in said} == said
    assert [one["tags"] for one in listed[1:]] == [["whole"], []]


def test_lists_leave_archived_experiments_out_unless_they_are_wanted(client: httpx.Client, change: Change) -> None:
    def ask(**params: str | list[str]) -> list[str]:
        answer = client.get("/v1/experiments", params={"all": "true", **params})
        assert answer.status_code == 200, answer.text
        return [one["id"] for one in answer.json()["experiments"]]

    change("1", archived=True, add_tags=["a", "b"], name="First")
    change("3", archived=True, add_tags=["a"], starred=True)  # it has not ended
    assert ask() == ["2", "3"]
    assert ask(archived="shown") == ["1", "2", "3"]
    assert ask(archived="only", sort="number") == ["1", "3"]
    assert ask(tag="a") == ["3"]
    assert ask(tag=["a", "b"], archived="shown") == ["1"]
    assert ask(name="first", archived="shown") == ["1"]
    assert ask(starred="true") == ["3"]


@pytest.mark.parametrize(
    ("name", "request_body", "words"),
    [
        ("1", {"name": "4.worker.1"}, "the name '4.worker.1' looks like the ID of an experiment"),
        ("1", {"add_tags": ["a b"]}, "the tag 'a b' has the character ' '"),
        ("1", {"note": "x" * 20_001}, "the note has 20,001 characters"),
        ("1", {"note": "a\0"}, "the note has bytes that are not UTF-8 text"),
        ("1.train", {"note": "x"}, "1.train is a job"),
        ("99", {"note": "x"}, "there is no experiment 99"),
        ("2.9", {"note": "x"}, "there is no experiment 2.9"),
    ],
)
def test_what_cannot_be_said_is_refused_in_words(
    change: Change, name: str, request_body: dict[str, object], words: str
) -> None:
    answer = change(name, **request_body)
    assert answer.status_code in (400, 404)
    assert say(answer) == words


def test_a_name_or_a_tag_stands_for_an_id(client: httpx.Client, change: Change) -> None:
    def find(word: str) -> str:
        answer = client.get("/v1/names/find", params={"word": word})
        return str(answer.json()["id"]) if answer.is_success else say(answer)

    change("1", name="baseline", add_tags=["both"])
    change("2", add_tags=["sweep.lr", "both"])
    change("2.1", name="best")
    assert find("baseline") == find(" baseline ") == "1"
    assert (find("baseline.train"), find("sweep.lr.2"), find("sweep.lr.2.train")) == ("1.train", "2.2", "2.2.train")
    assert (find("best"), find("best.train")) == ("2.1", "2.1.train")
    assert (find("4"), find("4.worker.1")) == ("4", "4.worker.1"), "an ID, whether it exists or not"
    assert find("both") == "'both' could be 1 (tag), 2 (tag)"
    completed = client.get("/v1/names", params={"prefix": "b"}).json()["names"]
    assert completed == ["baseline", "best", "both"], "a shell completes names and tags"
    assert client.get("/v1/names", params={"prefix": "b", "running": "true"}).json()["names"] == []
    change("1", archived=True)
    assert find("both") == "2", "an archived experiment counts only where nothing else has the tag"
    assert find("baseline") == "1"
    for word in "nothing", "baseline.4.5.6", "":
        assert find(word).endswith("is not an experiment ID, and no experiment has this name or tag")
    assert find("someone.4.worker.1") == "someone.4.worker.1", (
        "another user's: the next answer says whether it is shown"
    )
    assert find(f"{ME.user}.4") == "4", "one's own needs no user"
