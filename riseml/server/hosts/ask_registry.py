"""Resolve the tag of an image at its registry, through the first host that answers."""

from __future__ import annotations

from riseml.base.errors import EngineError, Refused, Unreachable
from riseml.base.secrets import RegistryCredential
from riseml.server.hosts.host_set import HostSet


def ask_registry(hosts: HostSet, base: str, credential: RegistryCredential | None = None) -> str:
    """Return the image with the digest that its registry gives for the tag now: `python@sha256:...`.

    Raises:
        Refused: jobs run as processes, or the registry does not answer or does not have the image.
        Unreachable: no host answers.
    """
    last_seen = hosts.last_seen()
    trouble = Unreachable("no host answers that could ask the registry", "see `riseml pool`")
    for name, executor in sorted(hosts.pool.executors.items()):
        registries = executor.capabilities.registries
        if registries is None:
            raise Refused("--pull asks a registry for the image, but here jobs run as processes", "leave --pull out")
        if name in last_seen and last_seen[name].silent_since is not None:
            continue
        try:
            return registries.resolve_in_registry(base, credential)
        except EngineError as error:
            raise Refused(error.message, error.hint) from error
        except Unreachable as error:
            trouble = error
    raise trouble
