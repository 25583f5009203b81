"""`train --pull`: the registry says what the tag of the image stands for now, before the experiment is accepted.

Without it the loop resolves the tag, on the host that builds: a request waits for no host. With it the user asked for
the registry, and a registry that does not answer is a refusal.
"""

from __future__ import annotations

from dataclasses import replace

from riseml.server.api.submit import Planned
from riseml.server.pool.ask_registry import ask_registry
from riseml.server.services import Services


def pull_image(planned: Planned, services: Services) -> Planned:
    """Return what will run, with the image that the registry has under the tag at this moment.

    Raises:
        Refused: jobs run as processes, or the registry does not answer or does not have the image.
        Unreachable: no host answers.
    """
    resolved = ask_registry(services.hosts, planned.plans[0].image.base)
    plans = tuple(replace(plan, image=replace(plan.image, refresh=True)) for plan in planned.plans)
    return replace(planned, plans=plans, resolved=resolved)
