"""The container of one job: created once, and found again by a repeated start."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import docker
from docker.errors import ImageNotFound

from riseml.errors import EngineError
from riseml.executors.docker import image_names, labels
from riseml.model import JobKey


def create_container(api: docker.APIClient, request: dict[str, Any], name: str, layer: str | None) -> bool:
    """Create a container, from the layer if it still exists. Return True when the container has the code.

    An image that was copied from another engine has a different name on this one.
    """
    if layer is not None:
        with suppress(ImageNotFound):
            api.create_container_from_config({**request, "Image": layer}, name)
            return True
    try:
        api.create_container_from_config(request, name)
    except ImageNotFound:
        image = image_names.find_local_name(api, request["Image"])
        if image is None:
            raise
        api.create_container_from_config({**request, "Image": image}, name)
    return False


def inspect_own(api: docker.APIClient, name: str, key: JobKey) -> dict[str, Any]:
    """Return the inspection of a job's container.

    Raises:
        EngineError: it belongs to another job, or not to riseml.
    """
    found: dict[str, Any] = api.inspect_container(name)
    if labels.parse_job_key(found["Config"]["Labels"] or {}) != key:
        raise EngineError(f"a container named {name} exists and does not belong to this job", permanent=True)
    return found
