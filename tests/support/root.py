"""What only root can do: network namespaces, file systems, another user.

`make test` runs as root in CI and skips none of these tests; a user without root runs the others.
"""

from __future__ import annotations

import os

import pytest

# `make test` in CI runs as root; a user without root runs the other tests.
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder to another user")
"""For tests of folders of another user."""


def need_root(reason: str) -> None:
    """Skip the test where the user is not root.

    Args:
        reason: what needs root, as a sentence.
    """
    if os.geteuid() != 0:  # CI is root; a user without root still runs every other test
        pytest.skip(reason)
