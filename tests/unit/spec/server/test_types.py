"""Schema, dataclasses, reference and example of server.yml agree with each other, and a file becomes its values."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from riseml.spec.scalars.quantities import parse_duration
from riseml.spec.schema.contract import SERVER_CONTRACT
from riseml.spec.server import types
from riseml.spec.server.loader import check_server_config, load_server_config
from riseml.spec.server.reference import render_server_reference
from riseml.spec.yaml.problems import KeyPath, SpecError

ROOT = Path(__file__).parents[4]
KEYS = dict(SERVER_CONTRACT.walk())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of a server.yml beside the files that the example names."""
    for name in ("certs/cert.pem", "certs/key.pem", "secrets/oidc", "secrets/scrape"):
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_text("text\n")
        target.chmod(0o600)
    return tmp_path / "server.yml"


@given(
    st.sampled_from(sorted(KEYS, key=str)), st.sampled_from(["~", "[]", "{}", "''", "x", "-1", "[~]", "{a: ~}", "yes"])
)
@settings(deadline=None, max_examples=200)
def test_any_value_anywhere_is_read_or_refused(keys: KeyPath, value: str) -> None:
    text = value
    for part in reversed(keys):
        text = f"[{text}]" if isinstance(part, int) else f"{{{part}: {text}}}"
    checked = check_server_config(text, "server.yml")
    assert (checked.config is None) == any(problem.severity.value == "error" for problem in checked.problems)


def test_the_schema_is_valid_json_schema() -> None:
    Draft202012Validator.check_schema(SERVER_CONTRACT.schema)
    assert SERVER_CONTRACT.schema["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("keys", [keys for keys in KEYS if keys[-1] != 0], ids=lambda keys: ".".join(map(str, keys)))
def test_every_key_has_title_description_and_examples(keys: KeyPath) -> None:
    schema = KEYS[keys]
    assert {"title", "description", "examples", "type"} <= set(schema)
    assert schema["description"].endswith(".")
    validator = Draft202012Validator({**schema, "$defs": SERVER_CONTRACT.schema["$defs"]})
    for example in [*schema["examples"], *([schema["default"]] if "default" in schema else [])]:
        assert validator.is_valid(example), example


def test_no_map_accepts_unknown_keys() -> None:
    for keys, schema in [((), SERVER_CONTRACT.schema), *KEYS.items()]:
        if "properties" in schema:
            assert schema["additionalProperties"] is False, keys


@pytest.mark.parametrize(
    ("keys", "cls", "other"),
    [
        ((), types.ServerConfig, {}),
        (("certificate",), types.CertificateFiles, {}),
        (("users",), types.UsersSection, {"from": "source"}),
        (("users", "ids", "paul"), types.UserId, {}),
        (("oidc",), types.OidcSection, {}),
        (("quotas",), types.QuotaDefaults, {}),
        (("quotas", "user"), types.QuotaLimits, {}),
        (("quotas", "project"), types.QuotaLimits, {}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_sections_have_the_fields_of_their_dataclass(keys: KeyPath, cls: Any, other: dict[str, str]) -> None:
    known = {other.get(key, key) for key in SERVER_CONTRACT.at(keys)["properties"]}
    assert known == {field.name for field in fields(cls)}


def test_choices_and_defaults_are_those_of_the_dataclasses() -> None:
    at = SERVER_CONTRACT.at
    oidc = types.OidcSection("", "")
    assert set(at(("users", "from"))["enum"]) == {source.value for source in types.UserSource}
    assert at(("users", "from"))["default"] == types.UsersSection().source.value
    assert set(at(("allow", 0))["enum"]) == {permission.value for permission in types.Permission}
    assert tuple(at(("oidc", "scopes"))["default"]) == oidc.scopes
    assert at(("oidc", "user_claim"))["default"] == oidc.user_claim
    assert at(("oidc", "groups_claim"))["default"] == oidc.groups_claim
    assert parse_duration(at(("quotas", "half_life"))["default"]) == types.DEFAULT_HALF_LIFE


def test_the_example_file_is_valid_and_shows_every_key(path: Path) -> None:
    text = (ROOT / "server.yml.example").read_text(encoding="utf-8")
    assert check_server_config(text, path).problems == ()
    named = set(re.findall(r"(?m)^ *([a-z_]+):", text))
    assert {str(keys[-1]) for keys in KEYS if keys[-1] not in (0, "NAME")} <= named


def test_the_reference_is_generated() -> None:
    page = (ROOT / "docs" / "server-yml.md").read_text(encoding="utf-8")
    assert page == render_server_reference(), "run `python -m riseml.spec.server.reference > docs/server-yml.md`"
    assert all(f"`{'.'.join(map(str, keys)).replace('.0', '[]')}`" in page for keys in KEYS if keys[-1] != 0)


def test_every_key_of_the_example_has_its_value(path: Path) -> None:
    config = load_server_config((ROOT / "server.yml.example").read_text(encoding="utf-8"), path)
    folder = str(path.parent)
    assert str(config.listen) == "0.0.0.0:8443" and config.listen.is_wildcard
    assert config.names == ("gpu1.example.org", "192.0.2.11")
    assert config.certificate == types.CertificateFiles(f"{folder}/certs/cert.pem", f"{folder}/certs/key.pem")
    assert config.users.ids == (("paul", types.UserId(2001, 2001)), ("ann", types.UserId(2002, 3000)))
    assert config.oidc is not None
    assert config.oidc.client_secret_file == f"{folder}/secrets/oidc"
    assert config.oidc.roles == (("gpu-users", "member"), ("gpu-admins", "admin"))
    assert config.allow == {types.Permission.HOST_NETWORK}
    assert config.images == ("python:*", "lab/*")
    assert config.secrets_key == "/etc/riseml/secrets.key"
    assert config.audit == "/var/log/riseml/audit.log"
    assert config.scrape_key_file == f"{folder}/secrets/scrape"
    assert config.quotas.user == types.QuotaLimits(4, 64, 256 * 1024, 20, 200, 20 * 2**30, 10 * 2**30, 500 * 2**30)
    assert config.quotas.project == types.QuotaLimits(gpus=8)
    assert config.quotas.half_life == 7 * 86400


def test_a_file_with_an_address_alone_allows_nothing_and_limits_nothing(path: Path) -> None:
    config = load_server_config("listen: '[::]:443'\n", path)
    address = types.ListenAddress("::", 443)
    assert config == types.ServerConfig(address, audit=f"{path.parent}/audit.log")
    assert str(address) == "[::]:443" and address.is_wildcard


def test_a_file_with_errors_says_all_of_them(path: Path) -> None:
    with pytest.raises(SpecError, match=r"server.yml has 2 problems\n.*:1:9 listen: .*\n.*:2:8 allow: "):
        load_server_config("listen: here\nallow: all\n", path)
