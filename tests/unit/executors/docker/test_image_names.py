"""What a tag stands for, from the engine's inspection of its image."""

from __future__ import annotations

import pytest

from riseml.base.errors import EngineError
from riseml.executors.docker.image_names import is_fixed, refuse_own_name, resolve_tag

ID = "sha256:" + "1" * 64
DIGEST = "sha256:" + "2" * 64
OTHER = "sha256:" + "3" * 64

TAGS = {
    "python:3.11": ([f"python@{DIGEST}"], f"python@{DIGEST}"),
    "python": ([f"python@{DIGEST}"], f"python@{DIGEST}"),
    "docker.io/library/python:3.11": ([f"python@{DIGEST}"], f"python@{DIGEST}"),
    "docker.io/anna/x:1": ([f"anna/x@{DIGEST}"], f"anna/x@{DIGEST}"),
    "localhost:5000/lab/x:1": ([f"y@{OTHER}", f"localhost:5000/lab/x@{DIGEST}"], f"localhost:5000/lab/x@{DIGEST}"),
    "localhost:5000/lab/x": ([f"localhost:5000/lab/x@{DIGEST}"], f"localhost:5000/lab/x@{DIGEST}"),
    "mine:1": ([], ID),
    "renamed:1": ([f"python@{DIGEST}"], ID),
    "twice:1": ([f"twice@{OTHER}", f"twice@{DIGEST}"], f"twice@{DIGEST}"),
}


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_stands_for_a_digest_of_its_registry_or_an_id(tag: str) -> None:
    digests, wanted = TAGS[tag]
    assert resolve_tag(tag, {"Id": ID, "RepoDigests": digests}) == wanted


def test_an_engine_may_list_no_digests() -> None:
    assert resolve_tag("mine:1", {"Id": ID, "RepoDigests": None}) == ID


def test_in_the_store_of_containerd_the_id_is_the_digest() -> None:
    inspected = {"Id": DIGEST, "RepoDigests": [f"python@{DIGEST}"]}
    assert resolve_tag("python:3.11", inspected) == f"python@{DIGEST}"


@pytest.mark.parametrize(
    ("reference", "fixed"),
    [
        (f"python@{DIGEST}", True),
        (ID, True),
        ("python:3.11", False),
        ("riseml/environment:ab", False),
        ("sha256:abc", False),  # the tag abc of an image that is called sha256, or the beginning of an ID
    ],
)
def test_a_digest_and_an_id_never_move(reference: str, *, fixed: bool) -> None:
    assert is_fixed(reference) == fixed


@pytest.mark.parametrize("alias", ["", "docker.io/", "index.docker.io/"])
@pytest.mark.parametrize("name", ["riseml/environment:ab", "riseml/image", f"riseml/environment@{DIGEST}"])
def test_riseml_fetches_none_of_its_own_names(alias: str, name: str) -> None:
    with pytest.raises(EngineError, match="is not on the host"):
        refuse_own_name(alias + name)


@pytest.mark.parametrize("name", ["riseml/base:1", "riseml/environments:1", "localhost:5000/riseml/image:1"])
def test_riseml_fetches_other_names(name: str) -> None:
    refuse_own_name(name)
