"""`train --pull`: resolve the tags of images at their registry before the experiment is accepted.

Without `--pull` the loop resolves the tags on the host that builds, so that a request waits for no host. With it, a
registry that does not answer refuses the submission.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from riseml.base.secrets import RegistryCredential
from riseml.model import Plan
from riseml.server.api.submissions.submit import Planned
from riseml.server.hosts.ask_registry import ask_registry
from riseml.server.hosts.host_set import HostSet

FindLogin = Callable[[str], RegistryCredential | None]
"""Returns the credential with which an image is requested."""


def pull_images(planned: Planned, hosts: HostSet, find_login: FindLogin) -> Planned:
    """Return the plans with the tags of their images resolved at the registry.

    Raises:
        Refused: jobs run as processes, or the registry does not answer or does not have an image.
        Unreachable: no host answers.
    """
    bases = dict.fromkeys(image.base for plan in planned.plans for image in plan.images)
    resolved = tuple((base, ask_registry(hosts, base, find_login(base))) for base in bases)
    return replace(planned, plans=tuple(_refresh(plan) for plan in planned.plans), resolved=resolved)


def _refresh(plan: Plan) -> Plan:
    roles = tuple((role, replace(image, refresh=True)) for role, image in plan.role_images)
    return replace(plan, image=replace(plan.image, refresh=True), role_images=roles)
