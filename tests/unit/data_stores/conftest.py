"""What several tests of stores use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.data_stores.save_site import Site
from tests.unit.data_stores.store_answers import serve


@pytest.fixture
def web_site() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A web server, and what it was asked."""
    with serve() as found:
        yield found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "output").mkdir()
    return Site(tmp_path / "output")
