"""The page docs/roles.md, made from the table of access. `python -m riseml.server.api.access_reference` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from riseml.base.roles import Role, Scope
from riseml.server.api.access_table import ACCESS, Access, ObjectKind

_HEAD = """# Roles

What a user may do on a team's server ([team.md](team.md)). The program `riseml.server.api.access_reference` makes
this page from the table that the server checks each request against. A server without server.yml has one user, who
may do everything.

## Users and projects

| role | where | may |
|---|---|---|
| `viewer` | server, or a project | look; on the server, also what they have of earlier days, without changing it |
| `member` | server, or a project | also submit, and change what is theirs |
| `maintainer` | a project | also change what other members have in the project |
| `admin` | server | see and change everything, and the server itself |

A role on the server is a limit: a viewer of the server changes nothing, whatever their role in a project. An
experiment belongs to its user and, if its `project` in riseml.yml is a team project in which the user is a member or
maintainer when they submit, to this project. A user sees their own experiments, those of their projects, and those of
projects that are open. Everything else answers as if it did not exist, in the same words; in a queue it is "another
user's experiment".

## Keys

| scope | may |
|---|---|
| `read` | what needs `read` below |
| `run` | what needs `read` or `run` |
| `admin` | all that its user may do |

A key that is bound to a project sees the experiments of this project alone, and submits to no other one.

## What each request needs

*Own* is about the caller's own things. *Experiment* is about the one in the address, *named* about those in the query
or the body: `viewer` stands for everyone who sees them, `member` for their user, a maintainer of their project, or an
admin. `STREAM` is a WebSocket. Without a valid key every request answers 401, but `GET /health`.
"""

_TITLES = {
    ObjectKind.EXPERIMENT: "One experiment",
    ObjectKind.NAMED: "Named experiments",
    ObjectKind.OWN: "Own",
    ObjectKind.SERVER: "The server",
}


def render_access_reference() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *(line for kind in _TITLES for line in _list_rows(kind))])


def _list_rows(kind: ObjectKind) -> Iterator[str]:
    """Yield the section of one kind: those that need least first."""
    rows = [(access, method, path) for (method, path), access in ACCESS.items() if access.kind is kind]
    yield from (f"### {_TITLES[kind]}", "", "| request | role | scope of the key |", "|---|---|---|")
    for access, method, path in sorted(rows, key=_order):
        yield f"| `{method} {path}` | {access.least.value} | {access.scope.value} |"
    yield ""


def _order(row: tuple[Access, str, str]) -> tuple[int, int, str, str]:
    access, method, path = row
    return list(Role).index(access.least), list(Scope).index(access.scope), path, method


if __name__ == "__main__":
    sys.stdout.write(render_access_reference())
