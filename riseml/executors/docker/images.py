"""Environments on one engine: find, pull, build.

A base image is pulled and run by its digest, see `riseml.executors.docker.image_names`.

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
from docker.errors import APIError
from docker.types import CancellableStream

from riseml.errors import EngineError
from riseml.executors.base import BuildOrder, ImageMissing, Work, WorkReport
from riseml.executors.docker import labels
from riseml.executors.docker.build_context import DOCKERFILE, write_build_context
from riseml.executors.docker.image_names import find_local_name, inspect_image, is_fixed, refuse_own_name
from riseml.executors.docker.layers import LayerFold
from riseml.executors.transports.engine_client import SEND_PATIENCE, raise_for_refusal
from riseml.model import Image
from riseml.names import split_reference
from riseml.planning.image import first_install_step
from riseml.terminal_text import plain_line

_PULL_HINT = "check the spelling of the image and its tag; `docker pull` on the host shows more"
_STEP = re.compile(r"^Step (\d+)/\d+ : ")
_LONGEST_LINE = 1 << 16  # characters kept of a line without an end
_NOISE = re.compile(r"^( ---> |Removing intermediate container |Successfully (built|tagged) )")


def ensure_environment(api: docker.APIClient, order: BuildOrder, build_network: str) -> None:
    """Pull the base image if it is missing, then build the environment if it has install steps.

    Raises:
        EngineError: the image does not exist, a step failed, or the order was cancelled.
    """
    image = order.image
    wanted = image.resolved or image.base
    base = find_local_name(api, wanted)
    if base is None:
        base = _fetch_base(api, order, wanted)
    if image.install and inspect_image(api, image.reference) is None:
        _build(api, order, base, build_network)


def _fetch_base(api: docker.APIClient, order: BuildOrder, wanted: str) -> str:
    """Pull the base image, and return its name. A resolved image is pulled by its digest, never by its tag."""
    image = order.image
    if wanted.startswith("sha256:"):
        raise ImageMissing(
            f"the image {image.base} was {wanted} when the experiment was accepted, and that image is gone",
            "it is in no registry; `riseml train` runs what the tag stands for now",
            permanent=True,
        )
    _pull(api, order, wanted)
    if is_fixed(wanted) and not is_fixed(image.base) and (image.refresh or inspect_image(api, image.base) is None):
        repository, tag = split_reference(image.base)
        api.tag(wanted, repository, tag, force=True)
    return wanted


def _pull(api: docker.APIClient, order: BuildOrder, base: str) -> None:
    refuse_own_name(base)
    order.emit(f"Fetching image {base}")
    fold = LayerFold(Work.PULL, base)
    try:
        whole = base if is_fixed(base) else ":".join(split_reference(base))
        for line in _stream_answer(api, order, "/images/create", {"fromImage": whole}):
            if "error" in line:
                raise ImageMissing(_pull_message(base, str(line["error"])), _PULL_HINT, permanent=True)
            report = fold.add_line(line)
            if report is not None:
                order.report(report)
            if line.get("status") in ("Pull complete", "Download complete", "Already exists"):
                order.emit(f"{line.get('id', '')}: {line['status']}")
    except APIError as error:
        raise ImageMissing(_pull_message(base, str(error.explanation)), _PULL_HINT, permanent=True) from error
    if find_local_name(api, base) is None:
        raise EngineError(f"the image {base} was fetched, but the engine does not have it", permanent=True)


def _pull_message(base: str, text: str) -> str:
    return f"the image {base} is not on the host and cannot be fetched: {text}"


def _build(api: docker.APIClient, order: BuildOrder, base: str, build_network: str) -> None:
    image = order.image
    with tempfile.TemporaryFile() as context:
        write_build_context(context, image, order.project, base)
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
    if inspect_image(api, image.reference) is None:
        raise EngineError("the engine did not finish the build; the server starts it again")


def _stream_answer(
    api: docker.APIClient, order: BuildOrder, path: str, params: dict[str, str], body: IO[bytes] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the JSON lines of a long answer. Closing the connection makes the engine stop: that cancels a build."""
    headers = {"Content-Type": "application/x-tar"} if body is not None else {}
    url = f"{api.base_url}/v{api.api_version}{path}"
    with api.post(url, params=params, data=body, headers=headers, stream=True, timeout=(SEND_PATIENCE, None)) as answer:
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
        rest = rest[-_LONGEST_LINE:]
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
        line = order.image.install[index]
        order.report(WorkReport(Work.INSTALL, line, index + 1, len(order.image.install)))
        order.emit(f"--> {line}")


def _build_message(image: Image, step: int, error: str) -> str:
    index = step - first_install_step(image)
    if not 0 <= index < len(image.install):
        return f"the environment could not be built: {error}"
    code = re.search(r"non-zero code: (\d+)", error)
    what = f"exit code {code[1]}" if code else error
    return f"install step {index + 1} failed with {what}: {image.install[index]}"
