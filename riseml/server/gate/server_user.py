"""The user that runs the server: on their own machine they are the only user, and may do everything."""

from __future__ import annotations

import getpass
import os

from riseml.base.roles import Role, Scope
from riseml.model import Caller, Owner


def find_server_user() -> Caller:
    """Return the user of this process. A dot separates the parts of an ID, so a user's name has none."""
    owner = Owner(getpass.getuser().replace(".", "-"), os.getuid(), os.getgid())
    return Caller(owner, Role.ADMIN, Scope.ADMIN)
