"""Who may use which route: one row for each route and stream of the API. What has no row answers nobody.

Example:
    >>> ACCESS["POST", "/v1/experiments/{name}/kill"]
    Access(scope=Scope.RUN, least=Role.MEMBER, kind=ObjectKind.EXPERIMENT)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from riseml.base.records import dataclass
from riseml.base.roles import Role, Scope


class ObjectKind(Enum):
    """What a route is about, and so whose role counts."""

    SERVER = "server"  # the server, its hosts and its users: the role on the server counts
    OWN = "own"  # what the caller has, sees or makes: the role on the server counts
    EXPERIMENT = "experiment"  # of the ID in the path: VIEWER sees it, MEMBER changes it as `control.permissions` says
    NAMED = "named"  # the experiments in the query or the body, to which the same applies


@dataclass(frozen=True, slots=True)
class Access:
    """What a caller needs for one route."""

    scope: Scope  # of the key
    least: Role  # of the user
    kind: ObjectKind


STREAM = "STREAM"
"""Stands for the method of a WebSocket."""

PROMETHEUS = "/metrics"
"""Outside of /v1, where Prometheus looks for it."""

_LOOK = Access(Scope.READ, Role.VIEWER, ObjectKind.SERVER)
_OWN_READ = Access(Scope.READ, Role.VIEWER, ObjectKind.OWN)
_OWN_WRITE = Access(Scope.RUN, Role.MEMBER, ObjectKind.OWN)
_OWN_KEYS = Access(Scope.ADMIN, Role.VIEWER, ObjectKind.OWN)
_OWN_PROJECT = Access(Scope.ADMIN, Role.MEMBER, ObjectKind.OWN)  # the route asks for a maintainer of the project
_OWN_SECRETS = Access(Scope.ADMIN, Role.MEMBER, ObjectKind.OWN)  # so has a key that only submits no way to replace them
_SEE = Access(Scope.READ, Role.VIEWER, ObjectKind.EXPERIMENT)
_CHANGE = Access(Scope.RUN, Role.MEMBER, ObjectKind.EXPERIMENT)
_NAMED_READ = Access(Scope.READ, Role.VIEWER, ObjectKind.NAMED)
_NAMED_WRITE = Access(Scope.RUN, Role.MEMBER, ObjectKind.NAMED)
_ADMIN = Access(Scope.ADMIN, Role.ADMIN, ObjectKind.SERVER)

ACCESS: Mapping[tuple[str, str], Access] = {
    ("GET", PROMETHEUS): Access(Scope.READ, Role.ADMIN, ObjectKind.SERVER),
    # the server
    ("GET", "/v1/server"): _LOOK,
    ("GET", "/v1/system"): _LOOK,
    ("POST", "/v1/server/stop"): _ADMIN,
    ("POST", "/v1/server/key"): _ADMIN,
    ("POST", "/v1/web"): _ADMIN,
    ("POST", "/v1/web/close"): _ADMIN,
    ("GET", "/v1/web/sessions"): _ADMIN,
    ("POST", "/v1/web/sessions/{name}/end"): _ADMIN,
    ("GET", "/v1/audit"): _ADMIN,
    ("GET", "/v1/audit/check"): _ADMIN,
    # sessions: those of others are for admins, which the route checks
    ("GET", "/v1/sessions"): _OWN_READ,
    ("POST", "/v1/sessions/{name}/end"): _OWN_READ,  # a viewer logs out, too
    # the pool
    ("GET", "/v1/pool"): _LOOK,
    ("GET", "/v1/pool/queue"): _LOOK,
    ("GET", "/v1/pool/usage"): _LOOK,
    ("GET", "/v1/gpus"): _LOOK,
    ("POST", "/v1/pool/check"): _ADMIN,
    ("POST", "/v1/pool/join"): _ADMIN,
    ("POST", "/v1/pool/recover"): _ADMIN,
    ("POST", "/v1/pool/hosts"): _ADMIN,
    ("POST", "/v1/pool/hosts/{name}/remove"): _ADMIN,
    ("POST", "/v1/pool/hosts/{name}/drain"): _ADMIN,
    ("POST", "/v1/pool/hosts/{name}/resume"): _ADMIN,
    ("GET", "/v1/pool/hosts/{name}/keys"): _ADMIN,
    ("POST", "/v1/pool/hosts/{name}/keys"): _ADMIN,
    ("GET", "/v1/leftovers"): _ADMIN,
    ("POST", "/v1/leftovers/remove"): _ADMIN,
    # users, keys and team projects: the routes of keys and members also look at whose they are
    ("GET", "/v1/whoami"): _OWN_READ,
    ("GET", "/v1/users"): _ADMIN,
    ("POST", "/v1/users"): _ADMIN,
    ("GET", "/v1/users/{name}"): _OWN_READ,
    ("POST", "/v1/users/{name}"): _ADMIN,
    ("POST", "/v1/users/{name}/link"): _ADMIN,
    ("GET", "/v1/keys"): _OWN_READ,
    ("POST", "/v1/keys"): _OWN_KEYS,
    ("POST", "/v1/keys/{key}/revoke"): _OWN_KEYS,
    ("GET", "/v1/projects"): _OWN_READ,
    ("POST", "/v1/projects"): _ADMIN,
    ("GET", "/v1/projects/{name}"): _OWN_READ,
    ("POST", "/v1/projects/{name}"): _OWN_PROJECT,
    ("POST", "/v1/projects/{name}/remove"): _ADMIN,
    ("POST", "/v1/projects/{name}/members/{user}"): _OWN_PROJECT,
    ("POST", "/v1/projects/{name}/members/{user}/remove"): _OWN_PROJECT,
    # secrets and credentials of registries: of a project, the routes ask for a maintainer
    ("GET", "/v1/secrets"): _OWN_READ,
    ("PUT", "/v1/secrets/{name}"): _OWN_SECRETS,
    ("DELETE", "/v1/secrets/{name}"): _OWN_SECRETS,
    ("GET", "/v1/registries"): _OWN_READ,
    ("PUT", "/v1/registries/{host}"): _OWN_SECRETS,
    ("DELETE", "/v1/registries/{host}"): _OWN_SECRETS,
    # quotas and usage; a route shows what the caller may see
    ("GET", "/v1/quotas"): _OWN_READ,
    ("POST", "/v1/quotas/{kind}/{name}"): _ADMIN,
    ("GET", "/v1/usage"): _OWN_READ,
    # a submission
    ("HEAD", "/v1/snapshots/{digest}"): _OWN_WRITE,
    ("PUT", "/v1/snapshots/{digest}"): _OWN_WRITE,
    ("PUT", "/v1/snapshots/{digest}/manifest"): _OWN_WRITE,
    ("POST", "/v1/snapshots/{digest}/contents"): _OWN_WRITE,
    ("GET", "/v1/snapshots/{digest}"): _OWN_READ,
    ("POST", "/v1/packs/{name}"): _OWN_WRITE,
    ("POST", "/v1/plans"): _OWN_WRITE,
    ("POST", "/v1/experiments"): _OWN_WRITE,
    ("POST", "/v1/experiments/check"): _OWN_WRITE,
    ("POST", "/v1/tensorboards"): _NAMED_WRITE,
    ("POST", "/v1/reruns/check"): _OWN_WRITE,
    # lists
    ("GET", "/v1/experiments"): _OWN_READ,
    ("GET", "/v1/changes"): _OWN_READ,
    ("GET", "/v1/names"): _OWN_READ,
    ("GET", "/v1/names/find"): _OWN_READ,
    ("GET", "/v1/metrics/names"): _OWN_READ,
    ("GET", "/v1/metrics/values"): _OWN_READ,
    ("GET", "/v1/samples"): _OWN_READ,
    ("GET", "/v1/comparison"): _NAMED_READ,
    ("GET", "/v1/results"): _NAMED_READ,
    ("GET", "/v1/results/groups"): _NAMED_READ,
    ("GET", "/v1/results/curves"): _NAMED_READ,
    ("GET", "/v1/table"): _NAMED_READ,
    ("GET", "/v1/table/csv"): _NAMED_READ,
    ("GET", "/v1/table/views"): _OWN_READ,  # those that the caller sees
    ("POST", "/v1/table/views"): _OWN_WRITE,
    ("POST", "/v1/table/views/remove"): _OWN_WRITE,  # the route asks whose it is
    ("GET", "/v1/reports"): _OWN_READ,  # those that the caller sees
    ("GET", "/v1/reports/{name}"): _OWN_READ,
    ("POST", "/v1/reports"): _OWN_WRITE,  # the store asks whose it is
    ("POST", "/v1/reports/remove"): _OWN_WRITE,
    ("POST", "/v1/reports/preview"): _OWN_READ,
    ("GET", "/v1/kept"): _OWN_READ,
    ("GET", "/v1/outputs"): _OWN_READ,
    # files
    ("GET", "/v1/files"): _NAMED_READ,
    ("GET", "/v1/files/content"): _NAMED_READ,
    ("PUT", "/v1/files/content"): _NAMED_WRITE,
    ("POST", "/v1/files/folder"): _NAMED_WRITE,
    ("POST", "/v1/files/link"): _NAMED_WRITE,
    ("POST", "/v1/files/remove"): _NAMED_WRITE,
    # an experiment or a set
    ("GET", "/v1/experiments/{name}"): _SEE,
    ("GET", "/v1/experiments/{name}/tfconfig"): _SEE,
    ("GET", "/v1/experiments/{name}/environment"): _SEE,
    ("GET", "/v1/experiments/{name}/explain"): _SEE,
    ("GET", "/v1/experiments/{name}/diagnosis"): _SEE,
    ("GET", "/v1/experiments/{name}/curves"): _SEE,
    ("GET", "/v1/experiments/{name}/importance"): _SEE,
    ("GET", "/v1/experiments/{name}/media"): _SEE,
    ("GET", "/v1/experiments/{name}/media/content"): _SEE,
    ("GET", "/v1/experiments/{name}/saved"): _SEE,
    ("GET", "/v1/experiments/{name}/logs"): _SEE,
    ("GET", "/v1/experiments/{name}/events"): _SEE,
    ("GET", "/v1/experiments/{name}/lines"): _SEE,
    ("GET", "/v1/experiments/{name}/lines/matches"): _SEE,
    ("GET", "/v1/experiments/{name}/samples"): _SEE,
    ("GET", "/v1/experiments/{name}/metrics"): _SEE,
    ("GET", "/v1/experiments/{name}/metrics/history"): _SEE,
    ("GET", "/v1/experiments/{name}/stragglers"): _SEE,
    ("GET", "/v1/experiments/{name}/capsule"): _SEE,
    ("POST", "/v1/experiments/{name}/address"): _SEE,
    (STREAM, "/v1/experiments/{name}/presence"): _SEE,
    ("POST", "/v1/experiments/{name}/annotation"): _CHANGE,
    ("POST", "/v1/experiments/{name}/kill"): _CHANGE,
    ("POST", "/v1/experiments/{name}/trials"): _CHANGE,
    ("POST", "/v1/experiments/{name}/search"): _CHANGE,
    ("POST", "/v1/experiments/{name}/keep"): _CHANGE,
    ("POST", "/v1/experiments/{name}/output/remove"): _CHANGE,
    ("POST", "/v1/experiments/{name}/save"): _CHANGE,
    ("POST", "/v1/experiments/{name}/diagnosis"): _CHANGE,
    ("POST", "/v1/experiments/{name}/stacks"): _CHANGE,
    ("POST", "/v1/experiments/{name}/profile"): _CHANGE,
    (STREAM, "/v1/experiments/{name}/command"): _CHANGE,
    (STREAM, "/v1/experiments/{name}/ports/{port}"): _CHANGE,
}


def find_rows(methods: Iterable[str], path: str) -> dict[str, Access]:
    """Return the rows of a route, by its methods.

    Raises:
        LookupError: one is missing: the server does not start, so that nobody forgets it.
    """
    rows = {method: ACCESS[method, path] for method in methods if (method, path) in ACCESS}
    missing = [method for method in methods if method not in rows]
    if missing or not rows:
        named = ", ".join(missing) or "no method"
        raise LookupError(f"riseml.server.api.access_table has no row for {named} {path}, so that nobody may use it")
    return rows
