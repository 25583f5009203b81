"""Environments on one engine: is it there, fetch it, make it.

A pull reports its failures inside a successful answer, and the SDK's own pull hides them behind an old local image; a
build does the same. Both are read here line by line.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import docker
from docker.errors import APIError, ImageNotFound
from docker.types import CancellableStream

from riseml.errors import EngineError
from riseml.executors.base import BuildOrder
from riseml.executors.docker import labels
from riseml.executors.docker.build_context import DOCKERFILE, write_build_context
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.model import Image, ImageSeen
from riseml.planning.image import first_install_step
from riseml.terminal_text import plain_line

_STEP = re.compile(r"^Step (\d+)/\d+ : ")
_NOISE = re.compile(r"^( ---> |Removing intermediate container |Successfully (built|tagged) )")
_BLOCK = 2**20
_PATIENCE = 60.0  # seconds between two pieces of an image


def is_present(api: docker.APIClient, reference: str) -> ImageSeen:
    """Whether the engine has the image."""
    return ImageSeen(present=_inspect(api, reference) is not None)


def ensure(api: docker.APIClient, order: BuildOrder, build_network: str) -> None:
    """Fetch the base image when it is missing, then make the environment when it has install steps.

    Raises:
        EngineError: the image does not exist, a step failed, or the order was cancelled.
    """
    image = order.image
    if _inspect(api, image.base) is None:
        _pull(api, order)
    if image.install and _inspect(api, image.reference) is None:
        _build(api, order, build_network)


def export(api: docker.APIClient, reference: str) -> Iterator[bytes]:
    """The image with all its layers, as `docker save` writes it.

    Raises:
        EngineError: it is not there (any more); that may pass, for it can be made again.
    """
    url = f"{api.base_url}/v{api.api_version}/images/get"
    with api.get(url, params={"names": reference}, stream=True, timeout=(api.timeout, _PATIENCE)) as answer:
        if answer.status_code == 404:
            raise EngineError(f"the image {reference} is not there any more")
        raise_for_refusal(answer)
        yield from answer.iter_content(_BLOCK)


def load(api: docker.APIClient, reference: str, stream: Iterator[bytes]) -> None:
    """Take in what `export` gave.

    Raises:
        EngineError: the stream ended early or the engine could not read it.
    """
    url = f"{api.base_url}/v{api.api_version}/images/load"
    headers = {"Content-Type": "application/x-tar"}
    with api.post(url, data=stream, headers=headers, stream=True, timeout=(api.timeout, None)) as answer:
        raise_for_refusal(answer)
        for line in answer.iter_lines():
            if line and "error" in json.loads(line):
                raise EngineError(f"the image {reference} could not be taken in: {json.loads(line)['error']}")
    if _inspect(api, reference) is None:
        raise EngineError(f"the image {reference} was sent, but the engine does not have it")


def publish(api: docker.APIClient, reference: str, registry: str) -> None:
    """Put the image into a registry, as `<registry>/<last part of its name>`.

    Raises:
        EngineError: the registry cannot be reached or refuses; `docker login` on the server's machine gives it a name.
    """
    repository, tag = _published(reference, registry)
    api.tag(reference, repository, tag, force=True)
    _read_transfer(api.push(repository, tag, stream=True, decode=True), f"{repository}:{tag} cannot be put there")


def fetch(api: docker.APIClient, reference: str, registry: str) -> None:
    """Get what `publish` put into a registry, under its own name again.

    Raises:
        EngineError: the registry cannot be reached, or does not have it.
    """
    repository, tag = _published(reference, registry)
    _read_transfer(api.pull(repository, tag, stream=True, decode=True), f"{repository}:{tag} cannot be fetched")
    own, own_tag = _split(reference)
    api.tag(f"{repository}:{tag}", own, own_tag, force=True)


def _published(reference: str, registry: str) -> tuple[str, str]:
    repository, tag = _split(reference)
    return f"{registry.rstrip('/')}/{repository.rpartition('/')[2]}", tag


def _split(reference: str) -> tuple[str, str]:
    """`riseml/environment:ab12` -> its repository and its tag."""
    bare = reference.partition("@")[0]
    return (bare.rpartition(":")[0], bare.rpartition(":")[2]) if _has_tag(bare) else (bare, "latest")


def _read_transfer(lines: Iterator[dict[str, Any]], trouble: str) -> None:
    for line in lines:
        if "error" in line:
            raise EngineError(f"{trouble}: {line['error']}")


def _inspect(api: docker.APIClient, reference: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = api.inspect_image(reference)
    except ImageNotFound:
        return None
    return found


def _pull(api: docker.APIClient, order: BuildOrder) -> None:
    base = order.image.base
    order.emit(f"Fetching image {base}")
    try:
        whole = base if "@" in base or _has_tag(base) else f"{base}:latest"
        for line in _post(api, order, "/images/create", {"fromImage": whole}):
            if "error" in line:
                raise EngineError(_pull_message(base, str(line["error"])), _PULL_HINT, permanent=True)
            if line.get("status") in ("Pull complete", "Download complete", "Already exists"):
                order.emit(f"{line.get('id', '')}: {line['status']}")
    except APIError as error:
        raise EngineError(_pull_message(base, str(error.explanation)), _PULL_HINT, permanent=True) from error
    if _inspect(api, base) is None:
        raise EngineError(f"the image {base} was fetched, but the engine does not have it", permanent=True)


_PULL_HINT = "check the spelling of the image and its tag; `docker pull` on the host shows more"


def _has_tag(reference: str) -> bool:
    return ":" in reference.rpartition("/")[2]


def _pull_message(base: str, text: str) -> str:
    return f"the image {base} is not on the host and cannot be fetched: {text}"


def _build(api: docker.APIClient, order: BuildOrder, build_network: str) -> None:
    image = order.image
    with tempfile.TemporaryFile() as context:
        write_build_context(context, image, order.snapshot)
        context.seek(0)
        params = {
            "dockerfile": DOCKERFILE,
            "t": image.reference,
            "labels": json.dumps({labels.ENVIRONMENT: image.digest}),
            "rm": "1",
            "forcerm": "1",
        }
        if build_network != "default":
            params["networkmode"] = build_network
        _read_build(_post(api, order, "/build", params, context), order)
    if _inspect(api, image.reference) is None:
        raise EngineError("the engine did not finish the build; it is begun again")


def _post(
    api: docker.APIClient, order: BuildOrder, path: str, params: dict[str, str], body: IO[bytes] | None = None
) -> Iterator[dict[str, Any]]:
    """The lines of an answer that takes its time. Leaving it makes the engine stop: that is how a build is
    cancelled.
    """
    headers = {"Content-Type": "application/x-tar"} if body is not None else {}
    url = f"{api.base_url}/v{api.api_version}{path}"
    with api.post(url, params=params, data=body, headers=headers, stream=True, timeout=(api.timeout, None)) as answer:
        raise_for_refusal(answer)
        lines = CancellableStream(answer.iter_lines(), answer)
        order.cancellation.attach(lines.close)
        yield from (json.loads(line) for line in lines if line)
    order.cancellation.check()


def _read_build(lines: Iterator[dict[str, Any]], order: BuildOrder) -> None:
    """Pass the output on and find out which step was the last one."""
    step = 0
    rest = ""
    for line in lines:
        if "error" in line:
            raise EngineError(_build_message(order.image, step, str(line["error"])), permanent=True)
        rest += str(line.get("stream", ""))
        *whole, rest = rest.split("\n")
        for text in map(plain_line, whole):
            started = _STEP.match(text)
            if started is not None:
                step = int(started[1])
                _announce(order, step)
            elif text.strip() and not _NOISE.match(text):
                order.emit(text)
    if plain_line(rest).strip():
        order.emit(plain_line(rest))


def _announce(order: BuildOrder, step: int) -> None:
    index = step - first_install_step(order.image)
    if 0 <= index < len(order.image.install):
        order.emit(f"--> {order.image.install[index]}")


def _build_message(image: Image, step: int, error: str) -> str:
    index = step - first_install_step(image)
    if not 0 <= index < len(image.install):
        return f"the environment could not be made: {error}"
    code = re.search(r"non-zero code: (\d+)", error)
    what = f"exit code {code[1]}" if code else error
    return f"install step {index + 1} failed with {what}: {image.install[index]}"
