"""Roles of the user's own end as their `ends` says, with real containers and with real processes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.rig import BASE, Rig

SLEEP = "exec sleep 600"
ANSWER = """\
import os, socket
server = socket.create_server((os.environ["ROLE_HOST"], int(os.environ["ROLE_PORT"])))
while True:
    server.accept()
"""


@dataclass(frozen=True)
class RoleEnding:
    """What the roles do, and how the experiment must end."""

    roles: dict[str, Any]
    state: str
    reason: str
    cause: str | None
    jobs: dict[str, str]  # name -> state


ENDINGS = {
    "one of several helpers is killed, and is named as the cause": RoleEnding(
        {
            "learner": {"run": SLEEP},
            "actor": {"run": '[ "$ROLE_INDEX" = 0 ] || kill -9 $$; exec sleep 600', "count": 2},
            "store": {"run": SLEEP, "ends": "serves"},
        },
        "FAILED",
        "SIGNAL",
        "actor.2",
        {"learner": "KILLED", "actor.1": "KILLED", "store": "KILLED"},
    ),
    "one of several jobs that decide fails": RoleEnding(
        {"solver": {"run": "exit $ROLE_INDEX", "count": 2}, "store": {"run": SLEEP, "ends": "serves"}},
        "FAILED",
        "EXIT_CODE",
        "solver.2",
        {"store": "KILLED"},
    ),
    "all that decide end well, once the store answers": RoleEnding(
        {
            "store": {"run": f"python3 -c '{ANSWER}'", "ends": "serves"},
            "solver": {"run": "exit 0", "count": 2, "after": ["store"]},
        },
        "FINISHED",
        "COMPLETED",
        None,
        {"solver.1": "FINISHED", "solver.2": "FINISHED", "store": "FINISHED"},
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_roles_end_as_they_say(shared_rig: Rig, name: str) -> None:
    ending = ENDINGS[name]
    train = {"image": BASE, "resources": {"cpus": 0.1, "mem": "64MiB"}, "roles": ending.roles}
    submitted = shared_rig.submit(json.dumps({"project": "gang", "train": train}))
    found = shared_rig.wait_closed(submitted["id"])
    assert (found["state"], found["reason"], found["cause"]) == (ending.state, ending.reason, ending.cause)
    states = {job["name"]: job["state"] for job in found["jobs"]}
    assert {job: states[job] for job in ending.jobs} == ending.jobs
    assert (shared_rig.containers(), shared_rig.networks()) == ([], [])
