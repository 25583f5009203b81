"""The user of the server, and under which ids their jobs run."""

from __future__ import annotations

import getpass
import os

from riseml.model import Owner
from riseml.server.gate.server_user import find_server_user
from riseml.spec.server.types import UserId, UsersSection


def test_jobs_of_the_servers_user_run_under_the_ids_of_server_yml() -> None:
    name = getpass.getuser().replace(".", "-")
    own = Owner(name, os.getuid(), os.getgid())
    assert find_server_user().owner == own
    assert find_server_user(UsersSection()).owner == own, "nobody maps it, and its jobs are refused"
    mapped = UsersSection(ids=((name, UserId(2001, 2002)),))
    assert find_server_user(mapped).owner == Owner(name, 2001, 2002)
