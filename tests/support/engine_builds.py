"""Environments that an engine builds, without a server."""

from __future__ import annotations

import io
import uuid
from contextlib import suppress

from docker.errors import APIError

from riseml.executors.build_limits import BuildLimits
from riseml.executors.docker.environment_builds import BuildSettings, EnvironmentBuilds, write_step_files
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.docker.step_containers import list_steps
from riseml.executors.transports import engine_client
from riseml.planning.image import Manifest, plan_image
from tests.support.builds import make_build_request
from tests.support.hosts import Engine
from tests.support.rig import BASE


class EngineBuilds:
    """Builds of a new server on an engine."""

    def __init__(self, url: str, limits: BuildLimits | None = None) -> None:
        self.server = uuid.uuid4().hex
        self.host = Engine(url)
        settings = BuildSettings(limits=limits or BuildLimits())
        self.engine = engine_client.Engine(url)
        self.builds = EnvironmentBuilds(Helpers(self.engine, self.server, HelperRegistry()), settings)
        self.images: list[str] = []  # names of those that it made
        self.lines: list[str] = []  # the log of the last one

    def make(self, *install: str, base: str = BASE) -> list[str]:
        """Make an environment on the engine; return its log."""
        image = plan_image(base, install, Manifest())
        identity = str(self.host.api.inspect_image(base)["Id"])
        steps = list_steps(image, identity, write_step_files(io.BytesIO(), image, None))
        self.images += [image.reference, *(step.image for step in steps)]
        self.lines = []
        self.builds.make_environment(make_build_request(image, self.lines), base, 4096)
        return self.lines

    def list_left(self) -> list[str]:
        """Return the containers and networks of its builds that are on the engine."""
        return [*self.host.shared(self.server), *map(str, self.host.rows(self.server))]

    def clean_up(self) -> None:
        """Remove the environments that it made, and what a failed test left."""
        self.host.clean_up(self.server)
        for name in self.images:
            with suppress(APIError):
                self.host.api.remove_image(name, force=True)
