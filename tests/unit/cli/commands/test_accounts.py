"""`whoami`, `user`, `key` and `project`: what they ask, what they print, and what they refuse before they ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.accounts import ANSWERS, KEY, PAUL, PROJECT, SECRET
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


@pytest.fixture(autouse=True)
def team(fake_server: FakeServer) -> None:
    fake_server.answers |= {route: (200, answer) for route, answer in ANSWERS.items()}


@pytest.mark.parametrize(
    ("words", "asked", "body"),
    [
        ("whoami", "GET /whoami", None),
        ("user create paul", "POST /users", {"name": "paul"}),
        (
            "user create paul --role viewer --uid 2001 --gid 3000 --email p@x --shared-uid",
            "POST /users",
            {"name": "paul", "role": "viewer", "uid": 2001, "gid": 3000, "email": "p@x", "shared_uid": True},
        ),
        ("user update paul --uid 2001", "POST /users/paul", {"uid": 2001}),
        ("user update paul --role admin --email=", "POST /users/paul", {"role": "admin", "email": ""}),
        ("user disable paul", "POST /users/paul", {"disabled": True}),
        ("user enable paul", "POST /users/paul", {"disabled": False}),
        ("user link paul 7d2f", "POST /users/paul/link", {"subject": "7d2f"}),
        ("user list", "GET /users", None),
        ("user display paul", "GET /users/paul", None),
        ("user display", "GET /users/paul", None),
        ("key create", "POST /keys", {"days": 90, "name": ""}),
        (
            "key create --name ci --scope run --project vision --days 30 --user paul",
            "POST /keys",
            {"days": 30, "name": "ci", "scope": "run", "project": "vision", "user": "paul"},
        ),
        ("key list", "GET /keys", None),
        ("key list --user paul", "GET /keys?user=paul", None),
        ("key list -u", "GET /keys?all_users=true", None),
        ("key revoke 5f0c1a2b3d 5f0c1a2b3d", "POST /keys/5f0c1a2b3d/revoke", None),
        ("session list", "GET /sessions", None),
        ("session list --user paul", "GET /sessions?user=paul", None),
        ("session list -u", "GET /sessions?user=%2A", None),
        ("session revoke 5f0c1a2b3d4e5f60", "POST /sessions/5f0c1a2b3d4e5f60/end", None),
        ("project create vision", "POST /projects", {"name": "vision", "open": False}),
        ("project create vision --open", "POST /projects", {"name": "vision", "open": True}),
        ("project list", "GET /projects", None),
        ("project show vision", "GET /projects/vision", None),
        ("project add vision paul", "POST /projects/vision/members/paul", {"role": "member"}),
        ("project add vision paul --role maintainer", "POST /projects/vision/members/paul", {"role": "maintainer"}),
        ("project remove vision paul", "POST /projects/vision/members/paul/remove", None),
        ("project open vision", "POST /projects/vision", {"open": True}),
        ("project close vision", "POST /projects/vision", {"open": False}),
        ("project delete vision --yes", "POST /projects/vision/remove", None),
    ],
)
def test_a_command_asks_for_one_thing(
    riseml: Riseml, fake_server: FakeServer, words: str, asked: str, body: dict[str, Any] | None
) -> None:
    for more in (), ("--json",):
        fake_server.account_bodies.clear()
        result = riseml(*words.split(), *more)
        assert result.code == 0, result.err
        assert fake_server.asked[-1] == asked
        assert fake_server.account_bodies == ([] if body is None else [body])
    assert isinstance(json.loads(result.out), dict)


def test_a_new_key_is_alone_on_standard_output(riseml: Riseml) -> None:
    for words in ("user", "create", "paul"), ("key", "create"):
        made = riseml(*words)
        assert made.out == f"{SECRET}\n"
        assert "Key 5f0c1a2b3d of paul may read and run experiments, in the project vision alone, until" in made.err
        assert made.err.endswith("The key is not shown again.\n")
        assert SECRET not in made.err
    assert json.loads(riseml("key", "create", "--json").out) == {"secret": SECRET, "key": KEY}
    assert json.loads(riseml("user", "create", "paul", "--json").out) == {"user": PAUL, "secret": SECRET, "key": KEY}


def test_accounts_are_shown_in_tables(riseml: Riseml) -> None:
    users = riseml("user", "list").out.splitlines()
    assert [line.split() for line in users] == [
        ["USER", "ROLE", "UID", "GID", "STATE", "EMAIL"],
        ["paul", "member", "2001", "3000", "enabled", "paul@example.org"],
        ["ann", "member", "-", "-", "disabled", "-"],
    ]
    keys = riseml("key", "list").out.splitlines()
    assert keys[1].split() == [
        "5f0c1a2b3d",
        "paul",
        "laptop",
        "abcd1234",
        "run",
        "vision",
        "valid",
        "2026-11-29",
        "never",
    ]
    assert keys[2].split()[:7] == ["0123456789", "paul", "laptop", "abcd1234", "run", "-", "revoked"]
    assert keys[2].endswith(" ago")
    sessions = riseml("session", "list").out.splitlines()
    assert sessions[0].split() == ["ID", "USER", "WHAT", "LAST", "USE", "ADDRESS", "PROGRAM", "EXPIRES"]
    assert sessions[1].split()[:3] == ["5f0c1a2b3d4e5f60", "paul", "browser"]
    assert sessions[1].split()[-3:] == ["192.0.2.7", "Firefox", "2026-11-29"]
    assert sessions[2].split()[2:4] == ["command", "line"]
    assert sessions[2].split()[-2] == "-"
    projects = riseml("project", "list").out.splitlines()
    assert projects[1].split("  ")[-1] == "ann (maintainer), paul (member)"
    assert projects[2].split() == ["audio", "all", "users", "-"]
    assert riseml("project", "show", "vision").out.splitlines()[-2:] == ["ann   maintainer", "paul  member"]


def test_whoami_says_who_you_are(riseml: Riseml, fake_server: FakeServer) -> None:
    assert riseml("whoami").out.splitlines() == [
        "User: paul",
        "Role: member",
        "Uid and gid: 2001:3000",
        "Key: 5f0c1a2b3d, which may read and run experiments",
        "Projects: vision (member)",
    ]
    alone = {"team": False, "role": "admin", "scope": "admin", "key": "", "projects": []}
    fake_server.answers["GET /whoami"] = (200, {**ANSWERS["GET /whoami"], **alone})
    assert riseml("whoami").out.splitlines()[:2] == ["User: paul", "Role: the only user of this server"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("user create Paul", "'Paul' is not a name for a user"),
        ("user create paul.m", "'paul.m' is not a name for a user"),
        ("user create 1paul", "'1paul' is not a name for a user"),
        ("user create paul --uid 0", "uid 0 is not for users"),
        ("user create paul --uid 999", "uid 999 is not for users"),
        ("user create paul --uid x", "invalid value for '--uid': 'x'"),
        ("user create paul --gid 0", "gid 0 is not for users"),
        ("user create paul --uid 2000 --gid 27", "gid 27 is not for users"),
        ("user create paul --gid 65534", "gid 65534 is not for users"),
        ("user create paul --role boss", "invalid value for '--role': 'boss'"),
        ("user create paul --role maintainer", "invalid value for '--role': 'maintainer'"),
        ("user create paul --role Admin", "invalid value for '--role': 'Admin'"),
        ("user create paul --email paul", "'paul' is not an e-mail address"),
        ("user create paul --email a@b@c", "'a@b@c' is not an e-mail address"),
        ("user create paul --email @", "'@' is not an e-mail address"),
        ("user link Paul 7d2f", "'Paul' is not a name for a user"),
        ("user link paul", "missing argument 'SUBJECT'"),
        ("user link paul \x07", "'\\x07' is not a subject"),
        (f"user link paul {'x' * 256}", f"'{'x' * 80}' is not a subject"),
        ("user update paul", "nothing is to be changed"),
        ("user update paul --shared-uid", "nothing is to be changed"),
        ("user update Paul --uid 2000", "'Paul' is not a name for a user"),
        ("user update paul --uid -1", "uid -1 is not for users"),
        ("user disable ../paul", "'../paul' is not a name for a user"),
        ("user disable PAUL", "'PAUL' is not a name for a user"),
        ("user disable", "missing argument 'USER'"),
        ("user enable a_b", "'a_b' is not a name for a user"),
        ("user display p/x", "'p/x' is not a name for a user"),
        ("user list paul", "got unexpected extra argument(s) (paul)"),
        ("whoami paul", "got unexpected extra argument(s) (paul)"),
        ("key create --days 0", "invalid value for '--days'"),
        ("key create --days 367", "invalid value for '--days'"),
        ("key create --days never", "invalid value for '--days'"),
        ("key create --scope all", "invalid value for '--scope': 'all'"),
        ("key create --scope READ", "invalid value for '--scope': 'READ'"),
        ("key create --scope write", "invalid value for '--scope': 'write'"),
        ("key create --project Vision", "'Vision' is not a name for a project"),
        ("key create --project a.b", "'a.b' is not a name for a project"),
        ("key create --project=", "'' is not a name for a project"),
        ("key create --user Paul", "'Paul' is not a name for a user"),
        ("key create --user .paul", "'.paul' is not a name for a user"),
        ("key create --user=", "'' is not a name for a user"),
        ("key create laptop", "got unexpected extra argument(s) (laptop)"),
        ("key list --user Paul", "'Paul' is not a name for a user"),
        ("key list --user paul -u", "--user and --all-users contradict each other"),
        ("key list paul", "got unexpected extra argument(s) (paul)"),
        ("key revoke", "missing argument"),
        ("key revoke abcd1234", "'abcd1234' is not the ID of a key"),
        ("key revoke 5F0C1A2B3D", "'5F0C1A2B3D' is not the ID of a key"),
        ("key revoke 5f0c1a2b3d 4", "'4' is not the ID of a key"),
        ("session list --user Paul", "'Paul' is not a name for a user"),
        ("session list --user paul -u", "--user and --all-users contradict each other"),
        ("session list paul", "got unexpected extra argument(s) (paul)"),
        ("session revoke", "missing argument"),
        ("session revoke 5f0c1a2b3d", "'5f0c1a2b3d' is not the ID of a session"),
        ("session revoke 5F0C1A2B3D4E5F60", "'5F0C1A2B3D4E5F60' is not the ID of a session"),
        ("session revoke riseml_session_x", "what lets a caller in is not the ID of a session"),
        ("project create Vision", "'Vision' is not a name for a project"),
        ("project create a_b", "'a_b' is not a name for a project"),
        (f"project create {'a' * 33}", "is not a name for a project"),
        ("project show 4", "'4' is not a name for a project"),
        ("project add vision", "missing argument 'USER'"),
        ("project add vision Paul", "'Paul' is not a name for a user"),
        ("project add vision paul --role admin", "invalid value for '--role': 'admin'"),
        ("project remove vision a.b", "'a.b' is not a name for a user"),
        ("project open V", "'V' is not a name for a project"),
        ("project close v/x", "'v/x' is not a name for a project"),
        ("project delete V --yes", "'V' is not a name for a project"),
    ],
)
def test_what_is_wrong_is_said_before_the_server_is_asked(
    riseml: Riseml, fake_server: FakeServer, words: str, sentence: str
) -> None:
    fake_server.asked.clear()
    result = riseml(*words.split())
    assert result.code == 2
    assert result.err.startswith(f"error: {sentence}") or sentence in result.err.splitlines()[0]
    assert fake_server.asked == []


def test_a_key_in_place_of_its_id_is_not_repeated(riseml: Riseml) -> None:
    result = riseml("key", "revoke", SECRET)
    assert (result.code, SECRET in result.err) == (2, False)
    assert "it may be in your shell's history" in result.err


def test_a_project_is_deleted_when_a_user_agrees(riseml: Riseml, fake_server: FakeServer) -> None:
    refused = riseml("project", "delete", "vision")
    assert (refused.code, fake_server.asked[-1]) == (4, "GET /projects/vision")
    assert "no user can agree to that here" in refused.err
    assert json.loads(riseml("project", "delete", "vision", "--yes", "--json").out) == PROJECT


def test_a_server_with_one_user_says_so(riseml: Riseml, fake_server: FakeServer) -> None:
    sentence = "this server has one user, and no keys or team projects"
    for route in ANSWERS:
        fake_server.refuse(
            route, "Refused", sentence, status=403, hint="`riseml server init` makes the server of a team"
        )
    for words in ("user", "list"), ("key", "create"), ("project", "open", "vision"):
        result = riseml(*words)
        assert (result.code, result.err.splitlines()) == (
            4,
            [f"error: {sentence}", "hint: `riseml server init` makes the server of a team"],
        )
