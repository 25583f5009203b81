"""The plug-in for `roles`: any gang of the user's own, and the addresses by which its jobs find each other.

For `learner: {...}` and `actor: {count: 2, ...}`, the job `actor.2` gets

    CLUSTER_SPEC={"cluster": {"learner": ["learner:2222"], "actor": ["actor-1:2222", "actor-2:2222"]},
                  "task": {"type": "actor", "index": 1}}
    ROLE=actor ROLE_INDEX=1 ROLE_COUNT=2 ROLE_ADDRESS=actor-2:2222 ROLE_HOST=actor-2 ROLE_PORT=2222
    LEARNER_ADDRESS=learner:2222 LEARNER_ADDRESSES=learner:2222 LEARNER_HOST=learner LEARNER_PORT=2222
    ACTOR_ADDRESS=actor-1:2222 ACTOR_ADDRESSES=actor-1:2222,actor-2:2222 ACTOR_HOST=actor-1 ACTOR_PORT=2222

and the same values as placeholders: `{{role_port}}`, `{{learner_address}}`. CLUSTER_SPEC has the form of TF_CONFIG.

The script of the waiting job implements `after`: only the job itself can test that it reaches another job over the
network. A gang gets all of its places or none. From the last line of a job the server learns that the job waits for
another one, and ends the experiment when that one has ended without an answer.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.base.names import JobName, job_name, job_type, split_address
from riseml.base.states import JobDuty
from riseml.frameworks.base import WORKER_GRACE, BaseImage, Binding, FrameworkJob, join_run_lines
from riseml.spec.config.types import RoleEnd, RoleSection, Train
from riseml.spec.scalars.placeholders import variable_name
from riseml.spec.scalars.role_names import CLUSTER_SPEC, list_peer_placeholders

if TYPE_CHECKING:
    from riseml.model import Environment, Plan

_PARTS = {RoleEnd.DECIDES: JobDuty.DECIDES, RoleEnd.HELPS: JobDuty.HELPS, RoleEnd.SERVES: JobDuty.SERVES}
_ROLES = "roles"
_AFTER = "after "  # prefix of the option that holds `after`; the name of the waiting role follows

_PROBE = """\
import socket, sys, time
tries = 0
while True:
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()
        break
    except OSError as error:
        tries += 1
        if tries == 300:  # once: `idle_timeout` takes every line for a sign of life
            print("riseml: still waiting for", sys.argv[1] + ":" + sys.argv[2] + ":", error, flush=True)
        time.sleep(0.2)
"""
"""Connects until the job answers. `python3 -IS` starts fast, and the project's own modules do not change it."""

_WAIT = f"""\
riseml_wait() {{
  echo "riseml: waiting until $3 answers at $1:$2"
  if command -v python3 >/dev/null; then python3 -IS -c {shlex.quote(_PROBE)} "$1" "$2"
  elif command -v bash >/dev/null
  then until bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null; do sleep 0.5; done
  else echo "riseml: \\`after\\` needs python3 or bash, and this image has neither" >&2; exit 127
  fi
}}"""
"""A shell function that returns once the port $2 of the host $1, a job of the role $3, answers."""

_BEGINS = "riseml: waiting until "
_GOES_ON = "riseml: still waiting for "
"""How the lines of a job begin that waits."""

_WAITED = "riseml: everything that this job waited for answers"

Groups = Mapping[str, Sequence[JobName]]
"""The jobs of each role, in the order of the plan."""


class Roles:
    """The plug-in for files with `roles`."""

    name = "roles"

    def image(self, train: Train) -> BaseImage | None:
        return None

    def roles(self, train: Train) -> tuple[FrameworkJob, ...]:
        in_order = sorted(train.roles, key=lambda role: role.ends is not RoleEnd.DECIDES)
        return tuple(_make_job(name, role, train) for role in in_order for name in _list_jobs(role))

    def options(self, train: Train) -> Environment:
        names = (_ROLES, ",".join(role.name for role in train.roles))
        waits = ((f"{_AFTER}{role.name}", json.dumps(dict(role.after))) for role in train.roles if role.after)
        return (names, *waits)

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        groups = _group_jobs(plan)
        cluster = {role: [addresses[name] for name in names] for role, names in groups.items()}
        role = job_type(job)
        members = groups.get(role, (job,))
        index = members.index(job)
        own = {
            **{"role": role, "role_index": str(index), "role_count": str(len(members))},
            **_name_addresses("role", addresses[job], [addresses[name] for name in members]),
        }
        peers = {
            key: value for name, all_ in cluster.items() for key, value in _name_addresses(name, all_[0], all_).items()
        }
        spec = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
        worker = _number_worker(plan, job)
        shared = {"TOTAL_WORKERS": worker["num_workers"], CLUSTER_SPEC: spec}
        if worker["worker_index"]:
            shared["WORKER_INDEX"] = worker["worker_index"]
        variables = {**{variable_name(name): value for name, value in {**peers, **own}.items()}, **shared}
        flags = {"job_name": role, "task_index": str(index), **_list_hosts(plan, addresses), **worker}
        return Binding(variables, {**peers, **own, **flags})

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        """Return the lines of `run`, after those that wait for the roles of `after`."""
        calls = [_wait_for(role, port) for role, port in _list_waits(plan, job).items()]
        waits = [_WAIT, *calls, f'echo "{_WAITED}"'] if calls else []
        return "\n".join([*waits, join_run_lines(lines)])


def list_awaited(plan: Plan, job: JobName) -> list[JobName]:
    """Return the jobs that must answer before the lines of `run` of this one begin."""
    groups = _group_jobs(plan)
    return [peer for role in _list_waits(plan, job) for peer in groups.get(role, ())]


def is_waiting_for(plan: Plan, job: JobName, peer: JobName, address: str, line: str) -> bool:
    """Return True when the last line of a job says that it waits for another one.

    Args:
        plan: the plan of the experiment.
        job: the job that printed it.
        peer: one of `list_awaited`.
        address: `host:port` of the peer.
        line: what the job printed last.
    """
    role = job_type(peer)
    port = _list_waits(plan, job).get(role)
    host, own = split_address(address)
    place = f"{host}:{own if port is None else port}"
    return line == f"{_BEGINS}{role} answers at {place}" or line.startswith(f"{_GOES_ON}{place}: ")


def says_that_it_waits(line: str) -> bool:
    """Return True for a line of a job that waits for any other one."""
    return line.startswith((_BEGINS, _GOES_ON))


def _make_job(name: JobName, role: RoleSection, train: Train) -> FrameworkJob:
    grace = _choose_grace(role, train)
    image = _choose_image(role, train)
    return FrameworkJob(name, _PARTS[role.ends], role.resources, grace, role.run, image, role.shell)


def _list_waits(plan: Plan, job: JobName) -> dict[str, int | None]:
    """Return the roles that a job waits for, each with the port that it asks; None: the port of the role's jobs."""
    waits: dict[str, int | None] = json.loads(dict(plan.options).get(f"{_AFTER}{job_type(job)}", "{}"))
    return waits


def _list_jobs(role: RoleSection) -> list[JobName]:
    if role.count is None:
        return [JobName(role.name)]
    return [job_name(role.name, index) for index in range(1, role.count + 1)]


def _choose_image(role: RoleSection, train: Train) -> BaseImage | None:
    """Return the environment of a role; None when it is that of `train`."""
    base = role.image or train.image
    own = role.image is not None or role.install != train.install or (role.install and role.shell is not train.shell)
    if not own or base is None:
        return None
    return BaseImage(base, role.install, role.shell) if role.install else BaseImage(base)


def _choose_grace(role: RoleSection, train: Train) -> float:
    if role.ends is not RoleEnd.HELPS:
        return 0.0
    return WORKER_GRACE if train.finish_grace is None else train.finish_grace


def _group_jobs(plan: Plan) -> Groups:
    """Return the jobs of each role, in the order of the file, without jobs that have no role (companions)."""
    written = dict(plan.options).get(_ROLES)
    roles = written.split(",") if written else list(dict.fromkeys(job_type(job.name) for job in plan.jobs))
    return {role: [job.name for job in plan.jobs if job_type(job.name) == role] for role in roles}


def _name_addresses(role: str, first: str, every: Sequence[str]) -> dict[str, str]:
    """Return the values of the placeholders that lead to a role; one address of each job, and all of them."""
    host, port = split_address(first)
    return dict(zip(list_peer_placeholders(role), (first, ",".join(every), host, port), strict=True))


def _number_worker(plan: Plan, job: JobName) -> dict[str, str]:
    """Return the placeholders that number a job among those that decide or help; a job that serves has no index."""
    workers = _list_workers(plan)
    index = str(workers.index(job)) if job in workers else ""
    return {"worker_index": index, "num_workers": str(len(workers))}


def _list_hosts(plan: Plan, addresses: Mapping[JobName, str]) -> dict[str, str]:
    """Return the flags of scripts that know only workers, which decide or help, and parameter servers, which serve.

    `worker_hosts` has the order that `worker_index` counts.
    """
    servers = [job.name for job in plan.jobs if job.part is JobDuty.SERVES]
    return {
        "worker_hosts": ",".join(addresses[name] for name in _list_workers(plan)),
        "ps_hosts": ",".join(addresses[name] for name in servers),
    }


def _list_workers(plan: Plan) -> list[JobName]:
    return [job.name for job in plan.jobs if job.part in (JobDuty.DECIDES, JobDuty.HELPS)]


def _wait_for(role: str, port: int | None) -> str:
    every = f"${variable_name(role)}_ADDRESSES"
    number = '"${riseml_peer##*:}"' if port is None else str(port)
    host = 'riseml_peer="${riseml_peer#\\[}"; riseml_host="${riseml_peer%:*}"'  # an IPv6 address has brackets
    call = f'riseml_wait "${{riseml_host%\\]}}" {number} {role}'
    return f'for riseml_peer in $(echo "{every}" | tr , " "); do {host}; {call}; done'
