"""The container of one job is created from the image that has its code, where there is one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import docker
from docker.errors import ImageNotFound

from riseml.executors.docker import image_names


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
