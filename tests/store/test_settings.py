"""The address of the store: PostgreSQL or nothing, and a password is never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.errors import UsageError
from riseml.settings import read_settings

GIVEN = "postgresql+psycopg://paul:secret@db/riseml?sslmode=require"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_name_of_postgresql_means_its_driver(scheme: str) -> None:
    settings = read_settings({"RISEML_STORE": f"{scheme}://paul:secret@db/riseml?sslmode=require"})
    assert settings.database == GIVEN
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    "text", ["mysql://paul:secret@db/riseml", "paul:secret@db", "sqlite:////tmp/secret.db", "://secret"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="RISEML_STORE is no address of a PostgreSQL") as raised:
        read_settings({"RISEML_STORE": text})
    assert "secret" not in f"{raised.value.message} {raised.value.hint}"


def test_without_one_it_is_a_file(tmp_path: Path) -> None:
    settings = read_settings({"RISEML_HOME": str(tmp_path), "RISEML_STORE": ""})
    assert settings.database == f"sqlite:///{tmp_path}/riseml.db"
