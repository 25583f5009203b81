"""Names of secrets and hosts of registries."""

from __future__ import annotations

import pytest

from riseml.base.errors import UsageError
from riseml.base.secrets import check_registry_host, check_secret_name, check_secret_value, find_registry_host


@pytest.mark.parametrize(
    ("image", "host"),
    [
        ("python", "docker.io"),
        ("lab/toaster:2", "docker.io"),
        ("index.docker.io/lab/toaster", "docker.io"),
        ("registry.lab/lab/toaster", "registry.lab"),
        ("localhost/x", "localhost"),
        ("Registry.lab:5000/x@sha256:1", "registry.lab:5000"),
    ],
)
def test_an_image_names_its_registry(image: str, host: str) -> None:
    assert find_registry_host(image) == host
    assert check_registry_host(host) == host


@pytest.mark.parametrize(
    "text", ["", "https://registry.lab", "registry.lab/lab", "a b", "registry.lab:port", "-x", "a..b"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not the host of a registry"):
        check_registry_host(text)


def test_names_and_values_have_bounds() -> None:
    for name in ("", "1a", "a/b", "a" * 65, "ä", "a\n"):
        with pytest.raises(UsageError, match="is not the name of a secret"):
            check_secret_name(name)
    assert check_secret_name("HF_token.2-a") == "HF_token.2-a"
    for value in ("", "a\0b", "ä" * 32_769):
        with pytest.raises(UsageError) as refused:
            check_secret_value(value)
        assert "ä" not in refused.value.message
    assert check_secret_value("x" * 65_536)
