"""The user that runs the server: on their own machine they are the only user, and may do everything."""

from __future__ import annotations

import getpass
import os

from riseml.base.accounts import NO_UID
from riseml.base.roles import Role, Scope
from riseml.model import Caller, Owner
from riseml.server.gate.user_ids import UserIds
from riseml.spec.server.types import UsersSection


def find_server_user(users: UsersSection | None = None) -> Caller:
    """Return the user of this process. A dot separates the parts of an ID, so a user's name has none.

    Args:
        users: of server.yml: their jobs run under the ids that it gives them, and are refused without; None: the server
            has one user.
    """
    name = getpass.getuser().replace(".", "-")
    owner = Owner(name, os.getuid(), os.getgid())
    mapped = owner if users is None else UserIds(users).find_owner(name)
    return Caller(owner if mapped.uid == NO_UID else mapped, Role.ADMIN, Scope.ADMIN)
