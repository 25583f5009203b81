"""Settings: PostgreSQL or a file, a password that is never repeated; engines have an address, times bounds."""

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


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("foo", "unix:///var/run/docker.sock or tcp://host:2375"),
        ("/var/run/docker.sock", "write unix:///"),
        ("unix://docker.sock", "write unix:///"),
        ("tcp://host", "tcp://host:2375"),
        ("host:2375", "tcp://host:2375"),
        ("ssh://paul@gpu1", "`url: ssh://paul@gpu1`"),
        ("tcp://host:2375 ", "tcp://host:2375"),
    ],
)
def test_an_engine_that_cannot_be_meant_is_refused(text: str, hint: str) -> None:
    with pytest.raises(UsageError, match="DOCKER_HOST is ") as raised:
        read_settings({"DOCKER_HOST": text})
    assert hint in str(raised.value.hint)


@pytest.mark.parametrize(
    "text", ["unix:///run/user/1000/docker.sock", "tcp://host:2375", "tcp://[::1]:2376/", "http://127.0.0.1:2375"]
)
def test_engines(text: str) -> None:
    assert read_settings({"DOCKER_HOST": text}).engine == text
    assert read_settings({"DOCKER_HOST": ""}).engine == "unix:///var/run/docker.sock"


@pytest.mark.parametrize("name", ["RISEML_LOST_AFTER", "RISEML_IDLE_AFTER"])
@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e300", "soon"])
def test_a_time_that_no_calendar_has_is_refused(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is"):
        read_settings({name: text})
