"""What a capsule holds of a project."""

from __future__ import annotations

from itertools import repeat

from riseml.server.reconcile.capsule_keeper import join_archive
from riseml.wire.capsules import MOST_CODE


def test_an_archive_is_joined_only_while_a_capsule_has_room_for_it() -> None:
    assert join_archive(repeat(bytes(512))) is None, "it would never end"
    assert join_archive(repeat(b"x" * 512, MOST_CODE // 512)) == b"x" * MOST_CODE
    assert join_archive([b"one", b"two"]) == b"onetwo"
    assert join_archive([]) is None
