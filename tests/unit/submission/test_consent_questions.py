"""What a command asks before it sends or starts anything, and what the home remembers of the answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from riseml.base.consent import FILE, read_consent
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.plans import PLAN

MISSING = "unix:///var/run/docker.sock: No such file or directory"
SENT = ["PUT", "POST"]  # what leaves the machine or starts something

Answers = Callable[..., list[str]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, fake_server: FakeServer) -> Answers:
    """Return a function that sets the user's answer; it returns the list of the questions. No consent is left over."""
    (fake_server.home / FILE).unlink(missing_ok=True)

    def answer(*, says: bool) -> list[str]:
        asked: list[str] = []

        def confirm(text: str, *, err: bool) -> bool:
            asked.append(text)
            return says

        monkeypatch.setattr("typer.confirm", confirm)
        return asked

    return answer


@pytest.fixture
def passing(folder: Path) -> Path:
    """A project that passes on two variables of the caller."""
    with (folder / "riseml.yml").open("a") as file:
        file.write("  env: [TOKEN, KEY]\n")
    return folder


def _sent(fake_server: FakeServer) -> list[str]:
    return [one for one in fake_server.asked if one.split()[0] in SENT]


def test_a_no_to_processes_sends_nothing_and_a_yes_is_asked_for_once(
    riseml: Riseml, fake_server: FakeServer, answers: Answers
) -> None:
    fake_server.server["missing_engine"] = MISSING
    asked = answers(says=False)
    refused = riseml("train", "-d", asks=True)
    assert (refused.code, _sent(fake_server)) == (4, [])
    assert refused.err == riseml("train", "-d").err, "the same words without a terminal"
    assert f"no Docker Engine answers here ({MISSING}): jobs would run as you, with your files\n" in refused.err
    assert riseml("train", "-d", "--json", asks=True).code == 4
    assert len(asked) == 1
    asked = answers(says=True)
    assert riseml("train", "-d", asks=True).code == 0
    assert asked == [
        f"No Docker Engine answers here ({MISSING}). Jobs would run as you, with your files."
        " Run them so, here and from now on?"
    ]
    assert riseml("train", "-d", asks=True).code == 0
    later = riseml("train", "-d")
    assert (later.code, later.err) == (0, ""), "not one word about it after that"
    assert len(asked) == 1


def test_a_server_with_processes_is_asked_about_unless_the_command_names_them(
    riseml: Riseml, fake_server: FakeServer, answers: Answers
) -> None:
    """An earlier `--executor process` is not a choice for the next project."""
    answers(says=False)
    fake_server.server["executor"] = "process"
    refused = riseml("train", "-d", asks=True)
    assert (refused.code, _sent(fake_server)) == (4, [])
    assert "the riseml server runs jobs as processes of this machine" in refused.err
    assert riseml("train", "-d", "--executor", "process").code == 0
    assert fake_server.bodies[-1]["executor"] == "process"
    assert riseml("train", "-d", environ={"RISEML_EXECUTOR": "process"}).code == 0


def test_a_system_test_asks_as_well(riseml: Riseml, fake_server: FakeServer, answers: Answers) -> None:
    answers(says=False)
    fake_server.server["missing_engine"] = MISSING
    assert riseml("system", "test", asks=True).code == 4
    assert _sent(fake_server) == []


def test_a_variable_is_named_and_asked_for_once_for_each_project_and_name(
    riseml: Riseml, fake_server: FakeServer, passing: Path, answers: Answers
) -> None:
    environ = {"TOKEN": "secret", "KEY": "other"}
    asked = answers(says=False)
    refused = riseml("train", "-d", environ=environ, asks=True)
    assert (refused.code, fake_server.asked) == (4, [])
    assert "note: riseml.yml passes TOKEN, KEY of your environment on to the code of project ai-toaster" in refused.err
    asked = answers(says=True)
    assert riseml("train", "-d", environ=environ, asks=True).code == 0
    assert asked == ["Send TOKEN, KEY, now and whenever you train this project here?"]
    assert riseml("train", "-d", environ=environ).code == 0
    assert fake_server.bodies[-1]["environment"] == environ
    assert "secret" not in (fake_server.home / FILE).read_text()
    (passing / "riseml.yml").write_text((passing / "riseml.yml").read_text().replace("KEY", "MORE"))
    assert riseml("train", "-d", environ=environ | {"MORE": "x"}, asks=True).code == 0
    assert asked[1:] == ["Send MORE, now and whenever you train this project here?"]
    elsewhere = passing.parent / "elsewhere"
    passing.rename(elsewhere)
    assert riseml("train", "-d", environ=environ | {"MORE": "x"}, where=elsewhere).code == 4


def test_without_a_terminal_an_option_allows_each_variable_for_one_run(
    riseml: Riseml, fake_server: FakeServer, passing: Path, answers: Answers
) -> None:
    answers(says=False)
    environ = {"TOKEN": "secret", "KEY": "other"}
    refused = riseml("train", "-d", "--allow-env", "TOKEN", environ=environ)
    assert (refused.code, fake_server.asked) == (4, [])
    assert "error: riseml.yml asks for KEY of your environment, which you have not allowed; nothing was" in refused.err
    assert "`--allow-env KEY` allows it for one run" in refused.err
    assert riseml("train", "-d", "--allow-env", "TOKEN", "--allow-env", "KEY", environ=environ).code == 0
    assert fake_server.bodies[-1]["environment"] == environ
    assert read_consent(fake_server.home).variables == frozenset()
    assert riseml("train", "-d", environ=environ).code == 4


def test_validate_and_a_dry_run_list_the_variables_and_send_no_value(
    riseml: Riseml, fake_server: FakeServer, passing: Path, answers: Answers
) -> None:
    asked = answers(says=False)
    assert riseml("validate").out.endswith("\nIt passes on from your environment: TOKEN, KEY\n")
    fake_server.answers["POST /plans"] = (200, PLAN)
    planned = riseml("train", "--dry-run", environ={"TOKEN": "secret", "KEY": "other"}, asks=True)
    assert (planned.code, asked) == (0, [])
    assert "note: riseml.yml passes TOKEN, KEY of your environment on to its code\n" in planned.err
    assert all("secret" not in str(body) for body in fake_server.plans)
