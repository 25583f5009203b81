"""stores.yml: what the server may fetch, and who may read the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from riseml.base.errors import EngineError, NotFound, Refused, RisemlError, UsageError
from riseml.data_stores.store_file import (
    Store,
    add_passed_keys,
    check_passed,
    find_job_store,
    find_store,
    read_stores,
)
from riseml.spec.scalars.data_url import parse_data_url

LAB: dict[str, Any] = {
    "name": "lab",
    "urls": ["s3://datasets/mnist/", "https://example.org/"],
    "access_key_id": "AKIA",
    "secret_access_key": "hush",
}


def read(folder: Path, *entries: object, mode: int = 0o600) -> tuple[Store, ...]:
    (folder / "stores.yml").write_text(json.dumps({"stores": list(entries)}))
    (folder / "stores.yml").chmod(mode)
    return read_stores(folder)


def refusal(folder: Path, *entries: object, mode: int = 0o600) -> RisemlError:
    with pytest.raises(RisemlError) as raised:
        read(folder, *entries, mode=mode)
    return raised.value


def allows(stores: tuple[Store, ...], url: str) -> bool:
    try:
        find_store(stores, parse_data_url(url))
    except Refused:
        return False
    return True


def test_without_the_file_nothing_is_allowed(tmp_path: Path) -> None:
    assert read_stores(tmp_path) == ()
    assert not allows((), "https://example.org/x")


def test_a_key_is_what_the_file_has(tmp_path: Path) -> None:
    """YAML would read these keys as numbers, and the store would refuse every request."""
    (tmp_path / "stores.yml").write_text(
        "stores:\n- name: 010\n  urls: [s3://datasets/]\n  region:\n  access_key_id: 01234567\n"
        "  secret_access_key: 12:30:45\n  jobs: yes\n  etag_is_md5: false\n"
    )
    (tmp_path / "stores.yml").chmod(0o600)
    (found,) = read_stores(tmp_path)
    assert (found.name, found.access_key_id, found.secret_access_key) == ("010", "01234567", "12:30:45")
    assert (found.region, found.jobs, found.etag_is_md5) == ("us-east-1", True, False)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("s3://datasets/mnist", True),
        ("s3://datasets/mnist/train", True),
        ("s3://datasets/mnist2", False),
        ("s3://datasets", False),
        ("gs://datasets/mnist", False),
    ],
)
def test_an_address_allows_what_is_below_it_and_nothing_else(tmp_path: Path, url: str, *, allowed: bool) -> None:
    assert allows(read(tmp_path, {**LAB, "urls": ["s3://datasets/mnist/"]}), url) is allowed


def test_a_web_server_is_allowed_as_a_whole_or_in_part(tmp_path: Path) -> None:
    whole = read(tmp_path, {"name": "web", "urls": ["https://example.org/"]})
    assert allows(whole, "https://example.org/a/b")
    for other in ("https://example.org:8443/a", "http://example.org/a", "https://example.org.evil.net/a"):
        assert not allows(whole, other)
    assert not allows(read(tmp_path, {"name": "web", "urls": ["https://example.org/data"]}), "https://example.org/a")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    error = refusal(tmp_path, LAB, mode=mode)
    assert (type(error), "chmod 600" in str(error.hint)) == (Refused, True)


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"stores": []}')
    (tmp_path / "stores.yml").symlink_to("elsewhere")
    with pytest.raises(Refused):
        read_stores(tmp_path)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"name": "lab"}, "needs name, and urls or saves"),
        ({**LAB, "secret": "hush"}, "needs name, and urls or saves or both, and may have"),
        ({**LAB, "name": "The Lab"}, "letters a-z"),
        ({**LAB, "urls": []}, "is a list of addresses"),
        ({**LAB, "urls": ["s3://datasets/../x"]}, 'the name ".."'),
        ({**LAB, "urls": ["data://x"]}, "data:// needs no store"),
        ({**LAB, "secret_access_key": "two words"}, "up to 4000 printable characters"),
        ({**LAB, "secret_access_key": ""}, "needs both"),
        ({"name": "lab", "urls": ["s3://a"], "access_key_id": "AKIA"}, "needs both"),
        ({"name": "lab", "urls": ["s3://a"], "endpoint": "ftp://x"}, "is not an address"),
        ({"name": "lab", "urls": ["s3://a"], "endpoint": "http://minio.example.org"}, "without TLS"),
        ({"name": "web", "urls": ["http://169.254.169.254/latest"]}, "without TLS"),
        ({"name": "lab", "urls": ["s3://a"], "jobs": "perhaps"}, "true or false"),
        ({"name": "lab", "urls": ["az://a"]}, "needs `account`"),
        ({"name": "lab", "saves": ["gs://a"]}, "needs `service_account`"),
        ({**LAB, "urls": ["s3://a", "gs://b"], "endpoint": "https://minio.example.org"}, "write a store for each"),
        ({**LAB, "urls": ["https://example.org/"]}, "keys are for s3://"),
        ({**LAB, "urls": ["s3://a"], "passed_keys": True}, "beside it there are no other keys"),
        ({"name": "web", "urls": ["https://example.org/"], "passed_keys": True}, "is for s3:// alone"),
    ],
)
def test_a_mistake_is_named_without_its_values(tmp_path: Path, entry: dict[str, Any], said: str) -> None:
    error = refusal(tmp_path, entry)
    assert isinstance(error, UsageError)
    assert said in error.message
    assert not {"hush", "AKIA"} & set(error.message.split())


def test_keys_reach_jobs_only_where_the_file_says_so(tmp_path: Path) -> None:
    entry = {**LAB, "urls": ["s3://a"], "endpoint": "http://127.0.0.1:9000"}
    closed, opened = read(tmp_path, entry), read(tmp_path, {**entry, "jobs": True})
    with pytest.raises(Refused, match="does not give the keys"):
        find_job_store(closed, "lab")
    with pytest.raises(NotFound):
        find_job_store(opened, "other")
    assert dict(find_job_store(opened, "lab").list_variables()) == {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "S3_ENDPOINT": "http://127.0.0.1:9000",
    }
    assert "hush" not in repr(opened)


def test_keys_that_an_experiment_passes_on_are_used_only_where_the_file_says_so(tmp_path: Path) -> None:
    own, passed = read(tmp_path, {**LAB, "urls": ["s3://a"]}, {"name": "b", "urls": ["s3://b"], "passed_keys": True})
    keys = {"AWS_ACCESS_KEY_ID": "AKIB", "AWS_SECRET_ACCESS_KEY": "quiet", "AWS_SESSION_TOKEN": "token"}
    check_passed(own, ())
    check_passed(passed, keys)
    with pytest.raises(Refused, match="AWS_SECRET_ACCESS_KEY is not passed on"):
        check_passed(passed, ["AWS_ACCESS_KEY_ID"])
    assert add_passed_keys(own, tuple(keys.items())) == own
    found = add_passed_keys(passed, (*keys.items(), ("AWS_ENDPOINT_URL", "http://evil.example.org")))
    assert (found.access_key_id, found.secret_access_key, found.session_token) == ("AKIB", "quiet", "token")
    assert (found.endpoint, found.region) == (passed.endpoint, passed.region)
    with pytest.raises(EngineError, match="erased when the experiment was closed") as raised:
        add_passed_keys(passed, ())
    assert raised.value.permanent
    assert "`riseml save ID --pass-keys` copies an output" in str(raised.value.hint)
