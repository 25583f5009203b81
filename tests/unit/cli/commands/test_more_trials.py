"""`train ID --trials N`: further trials of a set, and the variables that they need."""

from __future__ import annotations

import pytest

from riseml.base.errors import UsageError
from riseml.cli.commands.more_trials import check_trials
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment, make_search


@pytest.mark.parametrize(
    ("identity", "trials", "new", "said"),
    [
        (None, 2, [], "an ID and --trials go together"),
        ("144", None, [], "an ID and --trials go together"),
        ("144", 2, [None, ["lr=1"]], "take no option that changes it"),
        ("x/y", 2, [], "is not an experiment ID"),
    ],
)
def test_trials_need_a_set_and_change_nothing_of_it(
    identity: str | None, trials: int | None, new: list[object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        check_trials(identity, trials, new)
    assert check_trials("144", 2, [None, [], False]) == ("144", 2)


def test_variables_of_the_trials_are_asked_for_again(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(type="set", jobs=[], search=make_search(variables=["TOKEN", "KEY"]))
    fake_server.answers["POST /experiments/4/trials"] = (200, fake_server.experiments["4"])
    refused = riseml("train", "4", "--trials", "2", "-d", environ={"KEY": "k"})
    assert (refused.code, "the trials need TOKEN, and here it is not set" in refused.err) == (2, True)
    refused = riseml("train", "4", "--trials", "2", "-d", environ={"TOKEN": "t", "KEY": "k"})
    assert refused.code == 4, "the user has not allowed them"
    assert not any("trials" in question for question in fake_server.asked)
    allowed = ("--allow-env", "TOKEN", "--allow-env", "KEY")
    done = riseml("train", "4", "--trials", "2", "-d", *allowed, environ={"TOKEN": "t", "KEY": "k"})
    assert done.code == 0, done.err
    assert "POST /experiments/4/trials" in fake_server.asked
