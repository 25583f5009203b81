"""Users and their keys: what is stored, what is refused, and that the store has no key."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from riseml.base.errors import Conflict, NotFound, Refused, UsageError
from riseml.base.roles import Role, Scope
from riseml.store.accounts import MOST_KEYS, AccountStore, KeyRequest, User, UserChange
from riseml.store.database import Database
from riseml.store.key_digests import SECRET_FILE, KeyDigests
from riseml.store.team_projects import TeamProjectStore
from tests.unit.store.submissions import NOW

PAUL = User("paul", Role.MEMBER, NOW, 2001)


@pytest.fixture
def accounts(database: Database, tmp_path: Path) -> AccountStore:
    return AccountStore(database, KeyDigests(tmp_path))


def test_the_first_user_is_an_admin_and_there_is_one_first_user(accounts: AccountStore) -> None:
    made = accounts.add_first_admin("root-of-all", NOW)
    holder = accounts.find_holder(made.secret)
    assert holder is not None
    assert (holder.user.name, holder.user.role, holder.key.scope) == ("root-of-all", Role.ADMIN, Scope.ADMIN)
    with pytest.raises(Conflict, match="has users already"):
        accounts.add_first_admin("other", NOW)
    assert [user.name for user in accounts.list_users()] == ["root-of-all"]


def test_a_user_comes_back_as_stored_and_changes_add_up(accounts: AccountStore) -> None:
    accounts.add_user(replace(PAUL, email="paul@example.org"))
    stored = accounts.load_user("paul")
    assert stored == replace(PAUL, gid=2001, email="paul@example.org"), "without a gid, it is the number of the uid"
    for _ in range(2):
        changed = accounts.change_user("paul", UserChange(role=Role.VIEWER, uid=2002))
        assert changed == replace(stored, role=Role.VIEWER, uid=2002, gid=2002) == accounts.load_user("paul")
    assert accounts.change_user("paul", UserChange(gid=3000, email="")).gid == 3000
    assert accounts.change_user("paul", UserChange(disabled=True)).disabled
    assert accounts.change_user("paul", UserChange()) == accounts.load_user("paul")


@pytest.mark.parametrize(
    ("user", "words"),
    [
        (replace(PAUL, name="Paul"), "not a name for a user"),
        (replace(PAUL, uid=0), "uid 0 is not for users"),
        (replace(PAUL, gid=27), "gid 27 is not for users"),
        (replace(PAUL, uid=None, gid=3000), "gid without a uid"),
        (replace(PAUL, role=Role.MAINTAINER), "maintainer is not a role of a user"),
        (replace(PAUL, email="paul"), "not an e-mail address"),
    ],
)
def test_a_user_with_a_wrong_value_is_refused(accounts: AccountStore, user: User, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        accounts.add_user(user)
    assert accounts.list_users() == []
    if user.name == PAUL.name:
        accounts.add_user(PAUL)
        before = accounts.load_user("paul")
        accounts.change_user("paul", UserChange())
        change = UserChange(role=user.role, uid=user.uid, gid=user.gid, email=user.email)
        if user.uid is not None:
            with pytest.raises(UsageError, match=words):
                accounts.change_user("paul", change)
        assert accounts.load_user("paul") == before


def test_two_users_share_a_uid_only_when_the_admin_says_so(accounts: AccountStore) -> None:
    accounts.add_user(PAUL)
    ann = User("ann", Role.MEMBER, NOW, 2001)
    with pytest.raises(Conflict, match="paul has the uid 2001: ann could read"):
        accounts.add_user(ann)
    accounts.add_user(replace(ann, uid=2002))
    with pytest.raises(Conflict, match="paul has the uid 2001"):
        accounts.change_user("ann", UserChange(uid=2001))
    assert accounts.change_user("ann", UserChange(uid=2001, shared_uid=True)).uid == 2001
    assert accounts.change_user("ann", UserChange(role=Role.ADMIN)).uid == 2001, "said once is enough"
    accounts.add_user(User("bob", Role.MEMBER, NOW, 2001), shared_uid=True)
    for name in "tim", "tom":  # without uid, nothing is shared
        accounts.add_user(User(name, Role.VIEWER, NOW))
    with pytest.raises(Conflict, match="a user paul already"):
        accounts.add_user(replace(PAUL, uid=2009))


def test_an_admin_is_always_left(accounts: AccountStore) -> None:
    accounts.add_first_admin("ann", NOW)
    for change in UserChange(disabled=True), UserChange(role=Role.MEMBER):
        with pytest.raises(Conflict, match="ann is the only admin"):
            accounts.change_user("ann", change)
    accounts.add_user(replace(PAUL, role=Role.ADMIN))
    accounts.change_user("paul", UserChange(disabled=True))
    with pytest.raises(Conflict, match="ann is the only admin"):
        accounts.change_user("ann", UserChange(role=Role.VIEWER))
    accounts.change_user("paul", UserChange(disabled=False))
    assert accounts.change_user("ann", UserChange(role=Role.VIEWER)).role is Role.VIEWER


def test_the_store_has_no_key_and_another_secret_finds_none(
    accounts: AccountStore, database: Database, tmp_path: Path
) -> None:
    secret = accounts.add_first_admin("ann", NOW).secret
    with database.read_transaction() as connection:
        stored = str(connection.execute(sa.text("SELECT * FROM api_keys")).mappings().all())
    assert secret[-8:] in stored
    assert secret[-9:] not in stored
    assert secret[:30] not in stored
    assert (tmp_path / SECRET_FILE).stat().st_mode & 0o777 == 0o600
    assert AccountStore(database, KeyDigests(tmp_path)).find_holder(secret) is not None, "after a restart"
    (tmp_path / "other").mkdir(mode=0o700)
    assert AccountStore(database, KeyDigests(tmp_path / "other")).find_holder(secret) is None


def test_a_key_is_what_was_asked_for_until_it_is_revoked_or_expires(accounts: AccountStore, database: Database) -> None:
    accounts.add_user(PAUL)
    projects = TeamProjectStore(database)
    projects.add_project("vision", NOW)
    projects.put_member("vision", "paul", Role.MAINTAINER)
    made = accounts.add_key(KeyRequest("paul", Scope.READ, "vision", 7, "laptop"), NOW)
    holder = accounts.find_holder(made.secret)
    assert holder is not None
    assert (holder.key, holder.projects) == (made.key, (("vision", Role.MAINTAINER),))
    assert (made.key.scope, made.key.project, made.key.name) == (Scope.READ, "vision", "laptop")
    assert holder.is_valid(NOW)
    assert holder.is_valid(NOW + timedelta(days=7, seconds=-1))
    assert not holder.is_valid(NOW + timedelta(days=7))
    accounts.change_user("paul", UserChange(disabled=True))
    disabled = accounts.find_holder(made.secret)
    assert disabled is not None
    assert not disabled.is_valid(NOW)
    accounts.change_user("paul", UserChange(disabled=False))
    for moment in NOW + timedelta(hours=1), NOW + timedelta(hours=2):
        assert accounts.revoke_key(made.key.id, moment).revoked_at == NOW + timedelta(hours=1)
    revoked = accounts.find_holder(made.secret)
    assert revoked is not None
    assert not revoked.is_valid(NOW)
    assert accounts.load_key(made.key.id) == revoked.key
    usual = accounts.add_key(KeyRequest("paul"), NOW).key
    assert (usual.expires_at - NOW, usual.scope, usual.project) == (timedelta(days=90), Scope.ADMIN, None)


@pytest.mark.parametrize("text", ["", "riseml_", "riseml_" + "a" * 42, "\udcff", "x" * 10_000, "' OR 1=1 --"])
def test_a_text_that_is_no_key_finds_nobody(accounts: AccountStore, text: str) -> None:
    accounts.add_first_admin("ann", NOW)
    assert accounts.find_holder(text) is None


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (KeyRequest("paul", days=0), UsageError, "cannot be valid for 0 days"),
        (KeyRequest("paul", days=367), UsageError, "cannot be valid for 367 days"),
        (KeyRequest("paul", name="a\nb"), UsageError, "not a name for a key"),
        (KeyRequest("paul", name="x" * 65), UsageError, "not a name for a key"),
        (KeyRequest("paul", project="absent"), NotFound, "there is no project absent"),
        (KeyRequest("ann"), NotFound, "there is no user ann"),
    ],
)
def test_a_key_with_a_wrong_value_is_refused(
    accounts: AccountStore, request_: KeyRequest, error: type[Exception], words: str
) -> None:
    accounts.add_user(PAUL)
    with pytest.raises(error, match=words):
        accounts.add_key(request_, NOW)
    assert len(accounts.list_keys()) == 1


def test_valid_keys_are_counted_for_each_user(accounts: AccountStore) -> None:
    first = accounts.add_user(PAUL).key
    accounts.add_user(User("ann", Role.MEMBER, NOW))
    for _ in range(MOST_KEYS - 1):
        accounts.add_key(KeyRequest("paul", days=1), NOW)
    with pytest.raises(Refused, match=f"paul has {MOST_KEYS} valid keys"):
        accounts.add_key(KeyRequest("paul"), NOW)
    accounts.revoke_key(first.id, NOW)
    accounts.add_key(KeyRequest("paul"), NOW)
    accounts.add_key(KeyRequest("paul"), NOW + timedelta(days=1))  # the others have expired
    assert len(accounts.list_keys("paul")) == MOST_KEYS + 2
    assert len(accounts.list_keys("ann")) == 1


def test_uses_are_stored_by_key(accounts: AccountStore) -> None:
    used = accounts.add_user(PAUL).key
    other = accounts.add_key(KeyRequest("paul"), NOW).key
    later = NOW + timedelta(minutes=3)
    accounts.note_uses({used.id: later, "gone": later})
    assert {key.id: key.used_at for key in accounts.list_keys()} == {used.id: later, other.id: None}


def test_names_that_are_not_there_are_said(accounts: AccountStore) -> None:
    for ask in (
        lambda: accounts.load_user("paul"),
        lambda: accounts.change_user("paul", UserChange(disabled=True)),
        lambda: accounts.load_key("0123456789"),
        lambda: accounts.revoke_key("0123456789", NOW),
    ):
        with pytest.raises(NotFound, match=r"there is no (user paul|key 0123456789)"):
            ask()


def test_two_first_admins_at_the_same_moment_are_one(accounts: AccountStore) -> None:
    barrier = threading.Barrier(4)
    made: list[str] = []

    def add(name: str) -> None:
        barrier.wait()
        try:
            made.append(accounts.add_first_admin(name, NOW).key.user)
        except Conflict:
            made.append("")

    threads = [threading.Thread(target=add, args=(f"user-{at}",)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made)[:3] == ["", "", ""]
    assert [user.name for user in accounts.list_users()] == [name for name in made if name]
