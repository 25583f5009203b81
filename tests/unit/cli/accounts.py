"""Answers of a team's server about users, keys and projects."""

from __future__ import annotations

from riseml import wire
from tests.unit.cli.fake_server import NOW

PAUL: wire.UserView = {
    "name": "paul",
    "role": "member",
    "uid": 2001,
    "gid": 3000,
    "disabled": False,
    "email": "paul@example.org",
    "created_at": NOW,
}
KEY: wire.KeyView = {
    "id": "5f0c1a2b3d",
    "user": "paul",
    "name": "laptop",
    "tail": "abcd1234",
    "scope": "run",
    "project": "vision",
    "state": "valid",
    "created_at": NOW,
    "expires_at": "2026-11-29T07:23:46Z",
    "used_at": None,
    "revoked_at": None,
}
SECRET = "riseml_" + "x" * 42
PROJECT: wire.TeamProjectView = {
    "name": "vision",
    "open": False,
    "created_at": NOW,
    "members": [{"user": "ann", "role": "maintainer"}, {"user": "paul", "role": "member"}],
}
SESSION: wire.SessionView = {
    "id": "5f0c1a2b3d4e5f60",
    "user": "paul",
    "kind": "page",
    "created_at": NOW,
    "used_at": NOW,
    "expires_at": "2026-11-29T07:23:46Z",
    "user_agent": "Firefox",
    "address": "192.0.2.7",
    "key": "5f0c1a2b3d",
}
CALLER: wire.CallerView = {
    "user": "paul",
    "role": "member",
    "uid": 2001,
    "gid": 3000,
    "scope": "run",
    "key": "5f0c1a2b3d",
    "project": None,
    "projects": [{"project": "vision", "role": "member"}],
    "team": True,
}
ANSWERS = {
    "GET /whoami": CALLER,
    "GET /users": {"users": [PAUL, {**PAUL, "name": "ann", "uid": None, "gid": None, "disabled": True, "email": ""}]},
    "POST /users": {"user": PAUL, "secret": SECRET, "key": KEY},
    "GET /users/paul": PAUL,
    "POST /users/paul": PAUL,
    "POST /users/paul/link": PAUL,
    "GET /keys": {"keys": [KEY, {**KEY, "id": "0123456789", "state": "revoked", "used_at": NOW, "project": None}]},
    "POST /keys": {"secret": SECRET, "key": KEY},
    "POST /keys/5f0c1a2b3d/revoke": {**KEY, "state": "revoked"},
    "GET /sessions": {
        "user": "paul",
        "sessions": [SESSION, {**SESSION, "kind": "device", "user_agent": "", "key": None}],
    },
    "POST /sessions/5f0c1a2b3d4e5f60/end": {"user": "paul", "sessions": []},
    "GET /projects": {"projects": [PROJECT, {**PROJECT, "name": "audio", "open": True, "members": []}]},
    "POST /projects": PROJECT,
    "GET /projects/vision": PROJECT,
    "POST /projects/vision": PROJECT,
    "POST /projects/vision/remove": PROJECT,
    "POST /projects/vision/members/paul": PROJECT,
    "POST /projects/vision/members/paul/remove": PROJECT,
}
