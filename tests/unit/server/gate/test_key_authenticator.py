"""Keys at the gate: who calls, for how long an answer is remembered, and what all keys that are not valid get alike."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from riseml.base.api_keys import make_key
from riseml.base.errors import RisemlError, StoreError, TooManyAttempts, Unauthenticated
from riseml.base.roles import Role, Scope
from riseml.model import Caller, Owner
from riseml.server.gate.failed_attempts import MOST_FAILURES
from riseml.server.gate.key_authenticator import KeyAuthenticator
from riseml.store.accounts import AccountStore, KeyHolder, KeyRequest, User, UserChange
from riseml.store.database import Database
from riseml.store.key_digests import KeyDigests
from riseml.store.team_projects import TeamProjectStore
from tests.support.stores import make_new_store
from tests.unit.store.submissions import NOW

HERE = "192.0.2.7"
ELSEWHERE = "192.0.2.8"


class Scene:
    """A store with a member, the authenticator, its clocks, and how often the store was asked."""

    def __init__(self, database: Database, home: Path) -> None:
        self.seconds = 1000.0
        self.asked = 0
        self.accounts = AccountStore(database, KeyDigests(home))
        self.projects = TeamProjectStore(database)
        self.accounts.add_first_admin("ann", NOW)
        self.key = self.accounts.add_user(User("paul", Role.MEMBER, NOW, 2001))
        self.authenticator = KeyAuthenticator(self.accounts, self._find_owner, self.now, lambda: self.seconds)

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds - 1000)

    def enter(self, key: str | None = None, address: str = HERE) -> Caller:
        return self.authenticator.find_caller(self.key.secret if key is None else key, address)

    def _find_owner(self, user: User) -> Owner:
        self.asked += 1
        return Owner(user.name, user.uid or 0, user.gid or 0)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    (tmp_path / "riseml.db").write_bytes(make_new_store())
    return Scene(Database(f"sqlite:///{tmp_path}/riseml.db"), tmp_path)


def test_a_key_says_who_calls_and_what_they_may_do(scene: Scene) -> None:
    for name in "vision", "audio":
        scene.projects.add_project(name, NOW)
    scene.projects.put_member("vision", "paul", Role.MAINTAINER)
    scene.projects.put_member("audio", "paul", Role.VIEWER)
    owner = Owner("paul", 2001, 2001)
    memberships = (("audio", Role.VIEWER), ("vision", Role.MAINTAINER))
    expected = Caller(owner, Role.MEMBER, Scope.ADMIN, memberships, None, scene.key.key.id, HERE)
    assert scene.enter() == expected
    bound = scene.accounts.add_key(KeyRequest("paul", Scope.RUN, "vision"), NOW)
    changed = replace(expected, scope=Scope.RUN, projects=memberships[1:], project="vision", key=bound.key.id)
    assert scene.enter(bound.secret) == changed
    admin = scene.accounts.add_key(KeyRequest("ann", Scope.ADMIN, "audio"), NOW)
    caller = scene.enter(admin.secret)
    assert (caller.role, caller.projects) == (Role.MEMBER, (("audio", Role.MAINTAINER),)), "a bound key is no admin's"


def test_a_key_is_looked_up_once_in_two_seconds(scene: Scene) -> None:
    for _ in range(50):
        scene.enter()
        scene.seconds += 0.03
    assert scene.asked == 1
    scene.seconds += 0.6
    scene.enter()
    assert scene.asked == 2


def revoke(scene: Scene) -> None:
    scene.accounts.revoke_key(scene.key.key.id, scene.now())


def disable(scene: Scene) -> None:
    scene.accounts.change_user("paul", UserChange(disabled=True))


@pytest.mark.parametrize("end", [revoke, disable])
@pytest.mark.parametrize("told", [True, False])
def test_a_key_that_ends_is_refused_at_once_or_within_two_seconds(
    scene: Scene, end: Callable[[Scene], None], *, told: bool
) -> None:
    scene.enter()
    end(scene)
    if told:
        scene.authenticator.forget_looks()
    else:  # another process has written
        scene.enter()
        scene.seconds += 2.0
    with pytest.raises(Unauthenticated):
        scene.enter()


def test_a_key_expires_at_its_moment_although_it_is_remembered(scene: Scene) -> None:
    key = scene.accounts.add_key(KeyRequest("paul", days=1), NOW - timedelta(days=1) + timedelta(seconds=1))
    scene.enter(key.secret)
    scene.seconds += 0.999
    scene.enter(key.secret)
    scene.seconds += 0.001
    with pytest.raises(Unauthenticated):
        scene.enter(key.secret)


def test_a_change_while_a_key_is_looked_up_is_not_missed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    find_holder = AccountStore.find_holder

    def find_late(self: AccountStore, secret: str) -> KeyHolder | None:
        holder = find_holder(self, secret)
        revoke(scene)
        scene.authenticator.forget_looks()
        return holder

    monkeypatch.setattr(AccountStore, "find_holder", find_late)
    scene.enter()  # the key was valid when the store was asked
    monkeypatch.undo()
    with pytest.raises(Unauthenticated):
        scene.enter()


def list_bad_keys(scene: Scene) -> dict[str, str]:
    """A key of each kind that is not valid."""
    revoked, expired = (
        scene.accounts.add_key(KeyRequest("paul", days=1), NOW - timedelta(days=days)) for days in (0, 9)
    )
    scene.accounts.revoke_key(revoked.key.id, NOW)
    scene.accounts.add_user(User("tim", Role.MEMBER, NOW))
    of_tim = scene.accounts.add_key(KeyRequest("tim"), NOW)
    scene.accounts.change_user("tim", UserChange(disabled=True))
    return {
        "unknown": make_key(),
        "revoked": revoked.secret,
        "expired": expired.secret,
        "disabled": of_tim.secret,
        "malformed": "riseml_x",
        "empty": "",
        "other checksum": scene.key.secret[:-1] + ("a" if scene.key.secret[-1] != "a" else "b"),
        "lower case": scene.key.secret.lower(),
    }


def test_keys_that_are_not_valid_get_one_answer_after_the_same_questions_to_the_store(scene: Scene) -> None:
    questions: list[str] = []
    engine = scene.accounts._database.engine
    sa.event.listen(engine, "before_cursor_execute", lambda *args: questions.append(args[2]))
    answers = set()
    for at, key in enumerate(list_bad_keys(scene).values()):
        questions.clear()
        with pytest.raises(Unauthenticated) as raised:
            scene.enter(key, f"192.0.2.{at}")
        answers.add((raised.value.message, raised.value.hint, raised.value.http_status, *questions))
    assert len(answers) == 1


def test_ten_failures_within_a_minute_make_an_address_wait(scene: Scene) -> None:
    scene.enter(address=HERE)
    scene.seconds += 10  # the key is not remembered any more
    for _ in range(MOST_FAILURES):
        with pytest.raises(Unauthenticated):
            scene.enter(make_key())
        scene.seconds += 1
    other = scene.accounts.add_key(KeyRequest("paul"), NOW)
    for key in make_key(), other.secret, "riseml_x":
        with pytest.raises(TooManyAttempts) as raised:
            scene.enter(key)
        assert (raised.value.retry_after, raised.value.http_status) == (50, 429)
    assert scene.enter().user == "paul", "who came from this address before goes on"
    assert scene.enter(other.secret, ELSEWHERE).user == "paul", "other addresses are not concerned"
    scene.seconds += 50
    assert scene.enter(other.secret).user == "paul"


def test_an_established_key_that_was_revoked_counts_as_any_other(scene: Scene) -> None:
    scene.enter()
    revoke(scene)
    scene.seconds += 2
    with pytest.raises(Unauthenticated):
        scene.enter()
    for _ in range(MOST_FAILURES - 1):
        with pytest.raises(Unauthenticated):
            scene.enter(make_key())
    with pytest.raises(TooManyAttempts):
        scene.enter()


def test_the_gate_asks_again_without_counting(scene: Scene) -> None:
    revoke(scene)
    for _ in range(2 * MOST_FAILURES):
        with pytest.raises(Unauthenticated):
            scene.enter(address="")
    assert scene.enter(scene.accounts.add_key(KeyRequest("ann"), NOW).secret).user == "ann"


def test_failures_at_the_same_moment_are_all_counted(scene: Scene) -> None:
    barrier = threading.Barrier(30)
    kinds: list[type[RisemlError]] = []

    def attempt() -> None:
        barrier.wait()
        try:
            scene.enter(make_key())
        except RisemlError as error:
            kinds.append(type(error))

    threads = [threading.Thread(target=attempt) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(kind.__name__ for kind in kinds) == ["TooManyAttempts"] * 20 + ["Unauthenticated"] * 10


def test_the_last_use_is_stored_at_most_once_a_minute(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[dict[str, datetime]] = []
    note_uses = AccountStore.note_uses

    def note(self: AccountStore, moments: Mapping[str, datetime]) -> None:
        stored.append(dict(moments))
        note_uses(self, moments)

    monkeypatch.setattr(AccountStore, "note_uses", note)
    for _ in range(300):
        scene.enter()
        scene.seconds += 0.5  # 150 s in all
    assert len(stored) == 3
    used_at = scene.accounts.load_key(scene.key.key.id).used_at
    assert used_at == stored[-1][scene.key.key.id] == NOW + timedelta(seconds=120)


def test_a_store_that_cannot_be_written_holds_up_no_request(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(AccountStore, "note_uses", refuse)
    assert scene.enter().user == "paul"
