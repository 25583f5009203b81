"""The names of one image at an engine.

A tag may move at any time. The image behind it has a name that never moves: the digest of the registry
(`python@sha256:...`), or its ID when no registry has it. An engine knows an image by the digest only if it pulled the
image; an image from another engine has the name of `riseml.model.copy_name`.

In Docker's own image store an ID is the digest of the image's configuration; in that of containerd it is the digest of
its manifest, as in a registry. So the digest alone may be an ID, too.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound

from riseml.base.errors import EngineError
from riseml.base.names import name_repository, split_reference
from riseml.base.records import dataclass
from riseml.base.secrets import TOKEN_LOGIN, RegistryCredential, find_registry_host
from riseml.executors.base import ImageMissing
from riseml.executors.transports.engine_client import Engine, raise_for_refusal
from riseml.model import ImageObservation, copy_name

WITHOUT_PROGRAMS = ("riseml/empty:", "riseml/sync:", "riseml/disk:", "riseml/stacks:", "riseml/code:")
"""Beginnings of the names of riseml's own images that are not for running a program: they have none, or are a project's
code."""

ACCESS_WORDS = ("unauthorized", "no basic auth credentials", "authentication required", "denied", "docker login")
"""What an engine writes, in lower case, when a registry asks for another credential."""

_OWN = frozenset(
    {"riseml/environment", "riseml/image", "riseml/empty", "riseml/sync", "riseml/disk", "riseml/stacks"}
    | {"riseml/code", "riseml/step"}
)
_ID = re.compile(r"sha256:[0-9a-f]{64}")


def observe_images(api: docker.APIClient, references: Iterable[str]) -> dict[str, ImageObservation]:
    """Return whether the engine has these images, together with the resolved image of each tag."""
    images: dict[str, ImageObservation] = {}
    for reference in references:
        if is_fixed(reference):
            images[reference] = ImageObservation(present=find_local_name(api, reference) is not None)
            continue
        inspected = inspect_image(api, reference)
        resolved = "" if inspected is None else resolve_tag(reference, inspected)
        images[reference] = ImageObservation(present=inspected is not None, resolved=resolved)
        if resolved:
            images[resolved] = ImageObservation(present=True)
    return images


def is_fixed(reference: str) -> bool:
    """Return True for a digest or an ID, which always stand for the same image."""
    return "@" in reference or _ID.fullmatch(reference) is not None


def refuse_own_name(reference: str) -> None:
    """Refuse to fetch a name of riseml's own: a user who publishes it could replace environments and images.

    Raises:
        ImageMissing: the reference has such a name, however it is written (permanent).
    """
    if name_repository(reference) in _OWN:
        raise ImageMissing(
            f"the image {reference} is not on the host",
            "names of riseml's own images are never fetched",
            permanent=True,
        )


def resolve_tag(reference: str, inspected: Mapping[str, Any]) -> str:
    """Return the resolved name of a tag, from the inspection of its image: the digest of its registry, else the ID."""
    repository = name_repository(reference)
    digests = [str(digest) for digest in inspected.get("RepoDigests") or ()]
    return min((digest for digest in digests if digest.partition("@")[0] == repository), default=str(inspected["Id"]))


@dataclass(frozen=True, slots=True)
class EngineRegistries:
    """The registries that an engine reaches; an implementation of `ImageResolver`."""

    engine: Engine

    def resolve_in_registry(self, base: str, credential: RegistryCredential | None = None) -> str:
        if is_fixed(base):
            return base
        refuse_own_name(base)
        repository, tag = split_reference(base)
        with self.engine.api(patient=True) as api:
            try:
                distribution = _inspect_distribution(api, f"{repository}:{tag}", credential)
            except APIError as error:
                text = str(error.explanation or error)
                is_refused = any(words in text.lower() for words in ACCESS_WORDS)
                usual = "without --pull, riseml runs what the hosts have under this tag"
                raise EngineError(
                    f"the registry cannot be asked for {base}: {text}",
                    advise_login(base) if is_refused else usual,
                    permanent=True,
                ) from error
        return f"{name_repository(base)}@{distribution['Descriptor']['digest']}"

    def check_registry(self, digest: str, credential: RegistryCredential | None = None) -> None:
        refuse_own_name(digest)
        with self.engine.api(patient=True) as api:
            try:
                _inspect_distribution(api, digest, credential)
            except APIError as error:
                problem = f"its registry does not give it: {error.explanation or error}"
                raise EngineError(problem, permanent=True) from error


def make_registry_headers(credential: RegistryCredential | None, image: str) -> dict[str, str]:
    """Return the headers with which an engine pulls an image: it keeps the credential only while it pulls."""
    if credential is None:
        return {}
    host = find_registry_host(image)
    names = {"username": credential.login, "password": credential.password}
    auth = {"identitytoken": credential.password} if credential.login == TOKEN_LOGIN else names
    encoded = base64.urlsafe_b64encode(json.dumps({**auth, "serveraddress": host}).encode())
    return {"X-Registry-Auth": encoded.decode("ascii")}


def advise_login(image: str) -> str:
    """Return the advice for an image that its registry does not give without another credential."""
    return f"`riseml registry login {find_registry_host(image)} -u USER` keeps a credential for your experiments"


def _inspect_distribution(api: docker.APIClient, image: str, credential: RegistryCredential | None) -> dict[str, Any]:
    """Ask a registry through the engine, never with what the server's own user has in Docker's configuration."""
    headers = make_registry_headers(credential, image)
    url = f"{api.base_url}/v{api.api_version}/distribution/{image}/json"
    with api.get(url, headers=headers) as answer:
        raise_for_refusal(answer)
        content: dict[str, Any] = answer.json()
    return content


def find_local_name(api: docker.APIClient, reference: str) -> str | None:
    """Return a name under which the engine has this image; None: the engine does not have it."""
    return next((name for name in _list_names(reference) if inspect_image(api, name) is not None), None)


def find_local_image(api: docker.APIClient, reference: str) -> dict[str, Any] | None:
    """Return the inspection of this image under any of its names; None: the engine does not have it."""
    inspections = (inspect_image(api, name) for name in _list_names(reference))
    return next((inspection for inspection in inspections if inspection is not None), None)


def inspect_image(api: docker.APIClient, name: str) -> dict[str, Any] | None:
    """Return the inspection of the image with exactly this name; None: the engine does not have it."""
    try:
        inspection: dict[str, Any] = api.inspect_image(name)
    except ImageNotFound:
        return None
    return inspection


def _list_names(reference: str) -> Iterator[str]:
    yield reference
    if is_fixed(reference):
        yield copy_name(reference)
    if "@" in reference:
        yield reference.partition("@")[2]
