"""Environments on one engine: find, pull, build, export, import, push.

The engine reports the failure of a pull or of a build inside a successful answer. The SDK's own `pull` hides it when an
older image is present. So both answers are read line by line.
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
from riseml.executors.base import BuildOrder, NotThere
from riseml.executors.docker import labels
from riseml.executors.docker.build_context import DOCKERFILE, write_build_context
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.model import Image, ImageSeen
from riseml.planning.image import first_install_step
from riseml.terminal_text import plain_line

_PULL_HINT = "check the spelling of the image and its tag; `docker pull` on the host shows more"
_STEP = re.compile(r"^Step (\d+)/\d+ : ")
_NOISE = re.compile(r"^( ---> |Removing intermediate container |Successfully (built|tagged) )")
_BLOCK = 2**20  # bytes
_PATIENCE = 60.0  # seconds between two pieces of an image


def is_present(api: docker.APIClient, reference: str) -> ImageSeen:
    """Return whether the engine has the image."""
    return ImageSeen(present=_inspect_image(api, reference) is not None)


def ensure_environment(api: docker.APIClient, order: BuildOrder, build_network: str) -> None:
    """Pull the base image if it is missing, then build the environment if it has install steps.

    Raises:
        EngineError: the image does not exist, a step failed, or the order was cancelled.
    """
    image = order.image
    if _inspect_image(api, image.base) is None:
        _pull(api, order)
    if image.install and _inspect_image(api, image.reference) is None:
        _build(api, order, build_network)


def export_environment(api: docker.APIClient, reference: str) -> Iterator[bytes]:
    """Yield the image with all its layers, as `docker save` writes it.

    Raises:
        NotThere: the image does not exist; not permanent, because the server can build it again.
    """
    url = f"{api.base_url}/v{api.api_version}/images/get"
    with api.get(url, params={"names": reference}, stream=True, timeout=(api.timeout, _PATIENCE)) as answer:
        if answer.status_code == 404:
            raise NotThere(f"the image {reference} is not there any more")
        raise_for_refusal(answer)
        yield from answer.iter_content(_BLOCK)


def load_environment(api: docker.APIClient, reference: str, stream: Iterator[bytes]) -> None:
    """Load what `export_environment` gave.

    Raises:
        EngineError: the stream ended early or the engine could not read it.
    """
    url = f"{api.base_url}/v{api.api_version}/images/load"
    headers = {"Content-Type": "application/x-tar"}
    with api.post(url, data=stream, headers=headers, stream=True, timeout=(api.timeout, None)) as answer:
        raise_for_refusal(answer)
        for line in answer.iter_lines():
            if line and "error" in json.loads(line):
                raise EngineError(f"the image {reference} could not be loaded: {json.loads(line)['error']}")
    if _inspect_image(api, reference) is None:
        raise EngineError(f"the image {reference} was sent, but the engine does not have it")


def publish_environment(api: docker.APIClient, reference: str, registry: str) -> None:
    """Push the image to a registry, as `<registry>/<last part of its name>`.

    Raises:
        EngineError: the registry does not answer, or refuses; `docker login` on the server's machine authenticates.
    """
    repository, tag = _registry_name(reference, registry)
    api.tag(reference, repository, tag, force=True)
    _read_transfer(api.push(repository, tag, stream=True, decode=True), f"{repository}:{tag} cannot be pushed")


def fetch_environment(api: docker.APIClient, reference: str, registry: str) -> None:
    """Pull what `publish_environment` pushed, and give it its own name again.

    Raises:
        EngineError: the registry does not answer, or does not have it.
    """
    repository, tag = _registry_name(reference, registry)
    _read_transfer(api.pull(repository, tag, stream=True, decode=True), f"{repository}:{tag} cannot be fetched")
    own, own_tag = _split_reference(reference)
    api.tag(f"{repository}:{tag}", own, own_tag, force=True)


def _registry_name(reference: str, registry: str) -> tuple[str, str]:
    repository, tag = _split_reference(reference)
    return f"{registry.rstrip('/')}/{repository.rpartition('/')[2]}", tag


def _split_reference(reference: str) -> tuple[str, str]:
    """Return the repository and the tag of `riseml/environment:ab12`."""
    bare = reference.partition("@")[0]
    return (bare.rpartition(":")[0], bare.rpartition(":")[2]) if _has_tag(bare) else (bare, "latest")


def _read_transfer(lines: Iterator[dict[str, Any]], trouble: str) -> None:
    for line in lines:
        if "error" in line:
            raise EngineError(f"{trouble}: {line['error']}")


def _inspect_image(api: docker.APIClient, reference: str) -> dict[str, Any] | None:
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
        for line in _stream_answer(api, order, "/images/create", {"fromImage": whole}):
            if "error" in line:
                raise EngineError(_pull_message(base, str(line["error"])), _PULL_HINT, permanent=True)
            if line.get("status") in ("Pull complete", "Download complete", "Already exists"):
                order.emit(f"{line.get('id', '')}: {line['status']}")
    except APIError as error:
        raise EngineError(_pull_message(base, str(error.explanation)), _PULL_HINT, permanent=True) from error
    if _inspect_image(api, base) is None:
        raise EngineError(f"the image {base} was fetched, but the engine does not have it", permanent=True)


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
        _read_build(_stream_answer(api, order, "/build", params, context), order)
    if _inspect_image(api, image.reference) is None:
        raise EngineError("the engine did not finish the build; the server starts it again")


def _stream_answer(
    api: docker.APIClient, order: BuildOrder, path: str, params: dict[str, str], body: IO[bytes] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the JSON lines of a long answer. Closing the connection makes the engine stop: that cancels a build."""
    headers = {"Content-Type": "application/x-tar"} if body is not None else {}
    url = f"{api.base_url}/v{api.api_version}{path}"
    with api.post(url, params=params, data=body, headers=headers, stream=True, timeout=(api.timeout, None)) as answer:
        raise_for_refusal(answer)
        lines = CancellableStream(answer.iter_lines(), answer)
        order.cancellation.attach(lines.close)
        yield from (json.loads(line) for line in lines if line)
    order.cancellation.check()


def _read_build(lines: Iterator[dict[str, Any]], order: BuildOrder) -> None:
    """Emit the output; an error names the install step in which it happened."""
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
                _emit_step(order, step)
            elif text.strip() and not _NOISE.match(text):
                order.emit(text)
    if plain_line(rest).strip():
        order.emit(plain_line(rest))


def _emit_step(order: BuildOrder, step: int) -> None:
    index = step - first_install_step(order.image)
    if 0 <= index < len(order.image.install):
        order.emit(f"--> {order.image.install[index]}")


def _build_message(image: Image, step: int, error: str) -> str:
    index = step - first_install_step(image)
    if not 0 <= index < len(image.install):
        return f"the environment could not be built: {error}"
    code = re.search(r"non-zero code: (\d+)", error)
    what = f"exit code {code[1]}" if code else error
    return f"install step {index + 1} failed with {what}: {image.install[index]}"
