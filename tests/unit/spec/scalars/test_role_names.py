"""By which names the jobs of roles find each other."""

from __future__ import annotations

from riseml.spec.scalars.role_names import (
    CLUSTER_SPEC,
    OWN_ROLE_PLACEHOLDERS,
    list_peer_placeholders,
    list_role_placeholders,
    list_role_variables,
)


def test_a_role_has_four_names_for_its_peers() -> None:
    assert list_peer_placeholders("replay-buffer") == (
        "replay_buffer_address",
        "replay_buffer_addresses",
        "replay_buffer_host",
        "replay_buffer_port",
    )


def test_jobs_of_roles_have_what_is_their_own_and_the_names_of_all_roles() -> None:
    names = list_role_placeholders(["learner", "actor"])
    assert names > OWN_ROLE_PLACEHOLDERS
    assert {"learner_address", "actor_port"} < names
    assert list_role_variables(["learner", "actor"]) == {CLUSTER_SPEC, *(name.upper() for name in names)}


def test_without_roles_there_are_none() -> None:
    assert list_role_placeholders([]) == list_role_variables([]) == frozenset()
