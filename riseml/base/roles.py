"""What a key may do, and what a user may do. Both are ordered: a member includes those before it."""

from __future__ import annotations

import enum
import functools


@functools.total_ordering
class _Rank(enum.Enum):
    """An enum whose members are compared by the order in which they are written."""

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        members = list(type(self))
        return members.index(self) < members.index(other)


class Scope(_Rank):
    """What a key may do at most, whatever its user may do."""

    READ = "read"  # look at what its user sees
    RUN = "run"  # submit, change and end experiments, and write files
    ADMIN = "admin"  # all that its user may do


class Role(_Rank):
    """What a user may do: VIEWER, MEMBER or ADMIN of the server, and one of the first three in a team project."""

    VIEWER = "viewer"  # sees, and changes nothing
    MEMBER = "member"  # also submits, and changes what belongs to them
    MAINTAINER = "maintainer"  # of one team project: also changes what belongs to its other members
    ADMIN = "admin"  # of the server: sees and changes everything
