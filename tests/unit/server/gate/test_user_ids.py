"""The uid and gid of a user's jobs: who says it first, what is refused, and a directory that hangs."""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Iterator

import pytest

from riseml.base.accounts import NO_UID
from riseml.base.errors import Refused
from riseml.model import Owner
from riseml.server.gate.user_ids import SystemUsers, UserIds, check_owner
from riseml.spec.server.types import UserId, UserSource, UsersSection
from tests.support.waiting import DEADLINE

LISTED = UsersSection(ids=(("paul", UserId(2001, 3000)),))
SYSTEM = UsersSection(UserSource.SYSTEM)


def know(name: str) -> UserId | None:
    return UserId(5001, 5000) if name == "ann" else None


@pytest.mark.parametrize(
    ("section", "name", "uid", "gid", "ids"),
    [
        (LISTED, "paul", None, None, (2001, 3000)),
        (LISTED, "paul", 4001, 4000, (2001, 3000)),  # server.yml comes first
        (LISTED, "ann", 4001, 4000, (4001, 4000)),
        (LISTED, "ann", 4001, None, (4001, 4001)),
        (LISTED, "ann", 2001, None, (NO_UID, NO_UID)),  # that is paul
        (LISTED, "ann", None, None, (NO_UID, NO_UID)),
        (SYSTEM, "ann", None, None, (5001, 5000)),
        (SYSTEM, "ann", 4001, None, (4001, 4001)),  # what an admin has stored comes before the system
        (SYSTEM, "eve", None, None, (NO_UID, NO_UID)),
    ],
)
def test_the_first_that_says_the_ids_of_a_user(
    section: UsersSection, name: str, uid: int | None, gid: int | None, ids: tuple[int, int]
) -> None:
    assert UserIds(section, SystemUsers(know)).find_owner(name, uid, gid) == Owner(name, *ids)


def test_the_system_is_asked_by_name() -> None:
    row = pwd.getpwuid(os.getuid())
    owner = UserIds(SYSTEM).find_owner(row.pw_name)
    assert (owner.uid, owner.gid) == (row.pw_uid, row.pw_gid)
    assert UserIds(SYSTEM).find_owner("nobody-has-this-name").uid == NO_UID


@pytest.mark.parametrize(
    ("uid", "gid", "words"),
    [
        (NO_UID, NO_UID, "nobody has said"),
        (0, 0, "is not for users"),
        (0, 2001, "is not for users"),
        (999, 2001, "is not for users"),
        (2001, 0, "is not for users"),
        (2001, 998, "is not for users"),
        (65_534, 2001, "is not for users"),
    ],
)
def test_ids_of_the_system_and_missing_ones_are_refused(uid: int, gid: int, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        check_owner(Owner("ann", uid, gid), euid=0)
    assert "server.yml" in (refused.value.hint or "")
    assert "riseml user update ann --uid" in (refused.value.hint or "")


def test_a_server_that_is_not_root_gives_no_output_to_another_user() -> None:
    check_owner(Owner("ann", 2001, 100), euid=0)
    check_owner(Owner("ann", 2001, 2001), euid=2001)
    with pytest.raises(Refused, match="runs as uid 2000"):
        check_owner(Owner("ann", 2001, 2001), euid=2000)


class SlowDirectory:
    """A name service that answers when the test says so."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked = 0

    def look_up(self, name: str) -> UserId | None:
        self.asked += 1
        assert self.answers.wait(DEADLINE)
        return know(name)


@pytest.fixture
def directory() -> Iterator[SlowDirectory]:
    slow = SlowDirectory()
    yield slow
    slow.answers.set()


def test_a_directory_that_hangs_is_asked_once_and_its_last_answer_counts(directory: SlowDirectory) -> None:
    moment = 0.0
    users = SystemUsers(directory.look_up, patience=0.01, clock=lambda: moment)
    assert users.find_ids("ann") is None
    moment = 10.0
    assert users.find_ids("ann") is None
    assert directory.asked == 1
    directory.answers.set()
    known = SystemUsers(directory.look_up, patience=DEADLINE, clock=lambda: moment)
    assert known.find_ids("ann") == UserId(5001, 5000)
    directory.answers.clear()
    moment = 30.0
    assert known.find_ids("ann") == UserId(5001, 5000), "it is fresh"
    known._patience = 0.01
    moment = 300.0
    assert known.find_ids("ann") == UserId(5001, 5000), "the system does not answer now"


def test_a_directory_that_fails_counts_as_one_that_does_not_answer() -> None:
    def fail(_: str) -> UserId | None:
        raise OSError("the directory is gone")

    users = SystemUsers(fail, patience=DEADLINE)
    assert users.find_ids("ann") is None
    assert users.find_ids("ann") is None
