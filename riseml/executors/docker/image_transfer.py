"""Copy environments from one engine to another: as a stream, or through a registry.

The engine reports the failure of a push or a pull inside a successful answer, so the answers are read line by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import docker

from riseml.base.errors import EngineError
from riseml.base.names import split_reference
from riseml.base.records import dataclass
from riseml.executors.base import NotThere, Report, Work, ignore_report
from riseml.executors.docker.image_names import find_local_name, inspect_image
from riseml.executors.docker.layers import LayerProgress
from riseml.executors.transports.engine_client import SEND_PATIENCE, Engine, raise_for_refusal
from riseml.model import copy_name

_BLOCK = 2**20  # bytes
# Seconds without a byte. Engine 20.10 writes the whole image to its disk before the first byte: a disk that other jobs
# use takes minutes for 2 GB. Keepalive detects a host that is gone long before that.
_EXPORT_PATIENCE = 3600.0


@dataclass(frozen=True, slots=True)
class EngineImages:
    """The environments of one engine; an implementation of `ImageMover`."""

    engine: Engine

    def export_image(self, reference: str) -> Iterator[bytes]:
        """Yield the image with all its layers, as `docker save` writes it.

        Raises:
            NotThere: the image does not exist; not permanent, because the server can build it again.
        """
        with self.engine.stream() as api:
            name = _make_copy_name(api, reference)
            url = f"{api.base_url}/v{api.api_version}/images/get"
            with api.get(url, params={"names": name}, stream=True, timeout=(api.timeout, _EXPORT_PATIENCE)) as answer:
                if answer.status_code == 404:
                    raise NotThere(_make_gone_error(reference))
                raise_for_refusal(answer)
                yield from answer.iter_content(_BLOCK)

    def measure_image(self, reference: str) -> int | None:
        with self.engine.api() as api:
            inspection = inspect_image(api, find_local_name(api, reference) or reference)
        return None if inspection is None else int(inspection["Size"])

    def import_image(self, reference: str, stream: Iterator[bytes]) -> None:
        headers = {"Content-Type": "application/x-tar"}
        with self.engine.stream() as api:
            url = f"{api.base_url}/v{api.api_version}/images/load"
            with api.post(url, data=stream, headers=headers, stream=True, timeout=(SEND_PATIENCE, None)) as answer:
                raise_for_refusal(answer)
                for line in answer.iter_lines():
                    if line and "error" in json.loads(line):
                        raise EngineError(f"the image {reference} could not be loaded: {json.loads(line)['error']}")
            if find_local_name(api, reference) is None:
                raise EngineError(f"the image {reference} was sent, but the engine does not have it")

    def publish_image(self, reference: str, registry: str, report: Report = ignore_report) -> str:
        """Push the image to a registry; `docker login` on the server's machine authenticates.

        The name that it returns has the digest, so that a moved tag changes nothing.
        """
        with self.engine.api(patient=True) as api:
            name = _make_copy_name(api, reference)
            own, tag = split_reference(name)
            repository = f"{registry.rstrip('/')}/{own.rpartition('/')[2]}"
            api.tag(name, repository, tag, force=True)
            trouble = f"{repository}:{tag} cannot be pushed"
            lines = api.push(repository, tag, stream=True, decode=True)
            digest = _read_transfer(_report_layers(lines, reference, report), trouble)
        if not digest:
            raise EngineError(f"{trouble}: the registry gave no digest")
        return f"{repository}@{digest}"

    def fetch_image(self, reference: str, published: str, report: Report = ignore_report) -> None:
        repository, _, digest = published.partition("@")
        own, tag = split_reference(copy_name(reference))
        with self.engine.api(patient=True) as api:
            lines = api.pull(repository, digest, stream=True, decode=True)
            _read_transfer(_report_layers(lines, reference, report), f"{published} cannot be fetched")
            api.tag(published, own, tag, force=True)


def _make_copy_name(api: docker.APIClient, reference: str) -> str:
    """Give the image the name that copies of it have on other engines, and return that name.

    Raises:
        NotThere: the image does not exist.
    """
    local_name = find_local_name(api, reference)
    name = copy_name(reference)
    if local_name is None:
        raise NotThere(_make_gone_error(reference))
    if local_name != name:
        api.tag(local_name, *split_reference(name), force=True)
    return name


def _make_gone_error(reference: str) -> str:
    return f"the image {reference} is not there any more"


def _report_layers(lines: Iterator[dict[str, Any]], reference: str, report: Report) -> Iterator[dict[str, Any]]:
    """Yield the lines, and report how far the transfer is."""
    fold = LayerProgress(Work.SEND, reference)
    for line in lines:
        progress = fold.add_line(line)
        if progress is not None:
            report(progress)
        yield line


def _read_transfer(lines: Iterator[dict[str, Any]], trouble: str) -> str:
    """Read the answer of a push or pull, and return the digest of what was pushed; empty after a pull."""
    digest = ""
    for line in lines:
        if "error" in line:
            raise EngineError(f"{trouble}: {line['error']}")
        digest = str((line.get("aux") or {}).get("Digest") or digest)
    return digest
