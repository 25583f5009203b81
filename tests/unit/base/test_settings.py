"""Settings: URLs of PostgreSQL without their password in messages, URLs of engines, bounds of times and sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import Refused, UsageError
from riseml.base.settings import DEFAULT_LOG_LIMIT, DEFAULT_UPLOAD_LIMIT, read_settings
from riseml.spec.scalars.quantities import parse_memory

GIVEN = "postgresql+psycopg://paul:secret@db/riseml?sslmode=require"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_name_of_postgresql_means_its_driver(scheme: str) -> None:
    settings = read_settings({"RISEML_STORE": f"{scheme}://paul:secret@db/riseml?sslmode=require"})
    assert settings.database == GIVEN
    assert ":secret" not in repr(settings)


@pytest.mark.parametrize(
    "text", ["mysql://paul:secret@db/riseml", "paul:secret@db", "sqlite:////tmp/secret.db", "://secret"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="RISEML_STORE is not the URL of a PostgreSQL") as raised:
        read_settings({"RISEML_STORE": text})
    assert "secret" not in f"{raised.value.message} {raised.value.hint}"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("512M", 512 * 2**20), ("500MB", 500 * 2**20), ("500MiB", 500 * 2**20), ("500 mb", 500 * 2**20)),
        *(("1GB", 2**30), ("1gib", 2**30), ("1Gi", 2**30), ("1.5G", 3 * 2**29), ("1k", 1024), ("", DEFAULT_LOG_LIMIT)),
    ],
)
def test_a_size_means_the_same_in_a_variable_and_in_riseml_yml(text: str, size: int) -> None:
    assert read_settings({"RISEML_LOG_LIMIT": text}).log_limit == size
    if text and size >= 2**20:
        assert parse_memory(text) * 2**20 == size


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("500", "which has no unit", "such as 512M"),
        ("16Gb", "which has the unit Gb, which means bits", "write 16GiB"),
        ("lots", "which is not a size", "such as 512M"),
        ("-1M", "which is negative", "such as 512M"),
        ("3GiB", "RISEML_LOG_LIMIT is '3GiB'", "write a size from 1KiB to 2GiB"),
    ],
)
def test_a_size_that_a_variable_cannot_have_is_refused(text: str, problem: str, hint: str) -> None:
    with pytest.raises(UsageError, match=problem) as raised:
        read_settings({"RISEML_LOG_LIMIT": text})
    assert hint in str(raised.value.hint)


@pytest.mark.parametrize(("text", "mark"), [("", 85), ("false", None), ("False", None), ("10", 10), ("99", 99)])
def test_when_the_server_makes_room_on_disks_is_a_setting(text: str, mark: int | None) -> None:
    assert read_settings({"RISEML_CLEAN_ABOVE": text}).clean_above == mark
    for wrong in ("9", "100", "85%", "off", "0.85"):
        with pytest.raises(UsageError, match=f"RISEML_CLEAN_ABOVE is '{wrong}'"):
            read_settings({"RISEML_CLEAN_ABOVE": wrong})


def test_the_largest_upload_is_a_setting() -> None:
    assert read_settings({}).upload_limit == DEFAULT_UPLOAD_LIMIT
    assert read_settings({"RISEML_UPLOAD_LIMIT": "64GiB"}).upload_limit == 2**36
    with pytest.raises(UsageError, match="RISEML_UPLOAD_LIMIT is '0M'"):
        read_settings({"RISEML_UPLOAD_LIMIT": "0M"})


def test_without_one_it_is_a_file(tmp_path: Path) -> None:
    settings = read_settings({"RISEML_HOME": str(tmp_path), "RISEML_STORE": ""})
    assert settings.database == f"sqlite:///{tmp_path}/riseml.db"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("foo", "unix:///var/run/docker.sock or tcp://host:2376"),
        ("/var/run/docker.sock", "write unix:///"),
        ("unix://docker.sock", "write unix:///"),
        ("tcp://host", "tcp://host:2376"),
        ("host:2375", "tcp://host:2376"),
        ("ssh://paul@gpu1", "`url: ssh://paul@gpu1`"),
        ("tcp://host:2375 ", "tcp://host:2376"),
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
    allowing = {"DOCKER_HOST": text, "RISEML_ALLOW_PLAINTEXT": "1"}
    assert read_settings(allowing).engine == text
    as_processes = {"DOCKER_HOST": text, "RISEML_EXECUTOR": "process"}
    assert read_settings(as_processes).engine == text, "no engine is used"
    if not text.startswith("unix://"):
        with pytest.raises(Refused, match="which is not encrypted") as raised:
            read_settings({"DOCKER_HOST": text, "RISEML_ALLOW_PLAINTEXT": "", "DOCKER_CERT_PATH": "/certificates"})
        assert "DOCKER_TLS_VERIFY=1" in str(raised.value.hint)
        assert "RISEML_ALLOW_PLAINTEXT=1" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/certificates"}, Path("/certificates")),
        ({"DOCKER_TLS_VERIFY": "0"}, Path("~/.docker").expanduser()),  # any text, as Docker's command line
        ({"DOCKER_TLS_VERIFY": "1", "DOCKER_CONFIG": "/config"}, Path("/config")),
        ({"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "relative"}, Path.cwd() / "relative"),
        ({"DOCKER_TLS_VERIFY": "", "DOCKER_CERT_PATH": "/certificates"}, None),
    ],
)
def test_docker_s_variables_name_the_certificates(environ: dict[str, str], folder: Path | None) -> None:
    settings = read_settings({"DOCKER_HOST": "tcp://host:2376", "RISEML_EXECUTOR": "process"} | environ)
    assert settings.engine_certificates == folder
    assert folder is None or read_settings({"DOCKER_HOST": "tcp://host:2376"} | environ).engine == "tcp://host:2376"


def test_plaintext_is_allowed_by_one_word(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="RISEML_ALLOW_PLAINTEXT is 'yes'"):
        read_settings({"DOCKER_HOST": "tcp://host:2375", "RISEML_ALLOW_PLAINTEXT": "yes"})


def test_an_engine_by_default() -> None:
    assert read_settings({"DOCKER_HOST": ""}).engine == "unix:///var/run/docker.sock"


def test_an_output_has_no_limit_unless_one_is_set() -> None:
    assert read_settings({}).output_limit is None
    assert read_settings({"RISEML_OUTPUT_LIMIT": "100GiB"}).output_limit == 100 * 2**30
    with pytest.raises(UsageError, match="RISEML_OUTPUT_LIMIT is '0'"):
        read_settings({"RISEML_OUTPUT_LIMIT": "0"})


@pytest.mark.parametrize("name", ["RISEML_LOST_AFTER", "RISEML_IDLE_AFTER", "RISEML_TAKEOVER_AFTER"])
@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e300", "soon"])
def test_a_time_that_no_calendar_has_is_refused(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is"):
        read_settings({name: text})


@pytest.mark.parametrize(
    ("local", "store", "problem"),
    [
        ("{home}", GIVEN, "in RISEML_HOME, which the servers of other machines share"),
        ("{home}/local", GIVEN, "in RISEML_HOME, which the servers of other machines share"),
        ("{own}", "", "without RISEML_STORE"),
        ("{home}.txt", GIVEN, "which is not a folder"),
    ],
)
def test_the_own_folder_of_a_machine_is_outside_of_a_home_with_postgresql(
    tmp_path: Path, local: str, store: str, problem: str
) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    (tmp_path / "home.txt").touch()
    environ = {"RISEML_HOME": str(home), "RISEML_STORE": GIVEN, "RISEML_LOCAL": str(own)}
    settings = read_settings(environ)
    assert {path.parent for path in (settings.socket, settings.standby_socket, settings.log)} == {own}
    assert settings.lock.parent == settings.pool_file.parent == home
    with pytest.raises(UsageError) as raised:
        read_settings({**environ, "RISEML_STORE": store, "RISEML_LOCAL": local.format(home=home, own=own)})
    assert problem in raised.value.message
