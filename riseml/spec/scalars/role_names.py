"""The variables and placeholders by which jobs of the user's own roles find each other."""

from __future__ import annotations

from collections.abc import Iterable

from riseml.spec.scalars.placeholders import variable_name

CLUSTER_SPEC = "CLUSTER_SPEC"
"""The variable with all addresses, and the job's own task, as one JSON document."""

OWN_ROLE_PLACEHOLDERS = frozenset(
    {"role", "role_index", "role_count", "role_address", "role_addresses", "role_host", "role_port"}
)
"""What a job learns about itself; the variables have the same names in upper case."""

_PEER_PARTS = ("address", "addresses", "host", "port")


def list_peer_placeholders(role: str) -> tuple[str, ...]:
    """Return the placeholders that hold the addresses of a role's jobs.

    Example: `list_peer_placeholders("replay-buffer")[0]` is "replay_buffer_address".
    """
    return tuple(f"{role.replace('-', '_')}_{part}" for part in _PEER_PARTS)


def list_role_placeholders(roles: Iterable[str]) -> frozenset[str]:
    """Return every placeholder that the jobs of these roles have, beside the built-in ones; none without roles."""
    names = [name for role in roles for name in list_peer_placeholders(role)]
    return OWN_ROLE_PLACEHOLDERS.union(names) if names else frozenset()


def list_role_variables(roles: Iterable[str]) -> frozenset[str]:
    """Return every variable that riseml sets in the jobs of these roles; none without roles."""
    names = frozenset(variable_name(name) for name in list_role_placeholders(roles))
    return names | {CLUSTER_SPEC} if names else names
