"""Base images of environments on one engine: find and pull.

A base image is pulled and run by its digest, see `riseml.executors.docker.image_names`.

The engine reports the failure of a pull inside a successful answer. The SDK's own `pull` hides it when an older image
is present. So the answer is read line by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import docker
from docker.errors import APIError
from docker.types import CancellableStream

from riseml.base.errors import EngineError
from riseml.base.names import split_reference
from riseml.executors.base import BuildRequest, ImageMissing, Work
from riseml.executors.docker.image_names import (
    ACCESS_WORDS,
    advise_login,
    find_local_name,
    inspect_image,
    is_fixed,
    make_registry_headers,
    refuse_own_name,
)
from riseml.executors.docker.layers import LayerProgress
from riseml.executors.transports.engine_client import SEND_PATIENCE, raise_for_refusal

_PULL_HINT = "check the spelling of the image and its tag; `docker pull` on the host shows more"
_NETWORK_HINT = "the engine of the host does not reach the registry; `docker pull` on the host shows more"
_NETWORK_WORDS = ("dial tcp", "read tcp", "net/http", "context deadline exceeded", "connection reset by peer")
"""What an engine writes when its registry has not answered, so that the name of the image may be right."""


def ensure_base(api: docker.APIClient, request: BuildRequest) -> str:
    """Pull the base image of an environment if it is missing; return its name at the engine.

    Raises:
        EngineError: the image does not exist, or the request was cancelled.
    """
    image = request.image
    reference = image.resolved or image.base
    return find_local_name(api, reference) or _fetch_base(api, request, reference)


def _fetch_base(api: docker.APIClient, request: BuildRequest, reference: str) -> str:
    """Pull the base image, and return its name. A resolved image is pulled by its digest, never by its tag."""
    image = request.image
    if reference.startswith("sha256:"):
        raise ImageMissing(
            f"the image {image.base} was {reference} when the experiment was accepted, and that image is gone",
            "it is in no registry; `riseml train` runs what the tag stands for now",
            permanent=True,
        )
    _pull(api, request, reference)
    if is_fixed(reference) and not is_fixed(image.base) and (image.refresh or inspect_image(api, image.base) is None):
        repository, tag = split_reference(image.base)
        api.tag(reference, repository, tag, force=True)
    return reference


def _pull(api: docker.APIClient, request: BuildRequest, base: str) -> None:
    refuse_own_name(base)
    request.emit(f"Fetching image {base}")
    fold = LayerProgress(Work.PULL, base)
    try:
        whole = base if is_fixed(base) else ":".join(split_reference(base))
        for line in _stream_answer(api, request, "/images/create", {"fromImage": whole}):
            if "error" in line:
                raise _explain_pull(base, str(line["error"]))
            report = fold.add_line(line)
            if report is not None:
                request.report(report)
            if line.get("status") in ("Pull complete", "Download complete", "Already exists"):
                request.emit(f"{line.get('id', '')}: {line['status']}")
    except APIError as error:
        raise _explain_pull(base, str(error.explanation)) from error
    if find_local_name(api, base) is None:
        raise EngineError(f"the image {base} was fetched, but the engine does not have it", permanent=True)


def _explain_pull(base: str, text: str) -> ImageMissing:
    """Return the error of a pull that the engine has refused with this text."""
    hint = _choose_hint(base, text)
    return ImageMissing(f"the image {base} is not on the host and cannot be fetched: {text}", hint, permanent=True)


def _choose_hint(base: str, text: str) -> str:
    if any(words in text for words in _NETWORK_WORDS):
        return _NETWORK_HINT
    if "pull access denied" in text or "does not exist" in text:  # of Docker Hub, for a wrong name, too
        return f"{_PULL_HINT}; if it is private, {advise_login(base)}"
    if any(words in text.lower() for words in ACCESS_WORDS):
        return advise_login(base)
    return _PULL_HINT


def _stream_answer(
    api: docker.APIClient, request: BuildRequest, path: str, params: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the JSON lines of a long answer. Closing the connection makes the engine stop: that cancels a pull."""
    url = f"{api.base_url}/v{api.api_version}{path}"
    headers = make_registry_headers(request.credential, params["fromImage"])
    with api.post(url, params=params, headers=headers, stream=True, timeout=(SEND_PATIENCE, None)) as answer:
        raise_for_refusal(answer)
        lines = CancellableStream(answer.iter_lines(), answer)
        request.cancellation.attach(lines.close)
        yield from (json.loads(line) for line in lines if line)
    request.cancellation.check()
