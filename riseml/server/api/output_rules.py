"""Which outputs may be removed."""

from __future__ import annotations

from riseml.errors import Conflict
from riseml.names import CanonicalId, experiment_name
from riseml.server.api.named_experiments import find_details
from riseml.server.services import Services


def check_removable(wanted: CanonicalId, services: Services) -> None:
    """Return when nothing holds the output of an experiment, or of any experiment of a set.

    Raises:
        Conflict: it runs, or is kept.
    """
    kept = services.kept.load_kept()
    for detail in find_details(wanted, services):
        one = detail.experiment
        name = experiment_name(one.number, one.sub)
        if not one.closed:
            raise Conflict(
                f"experiment {name} has not ended, and nothing of its output is removed",
                f"`riseml kill {name}` ends it; or wait for its end",
            )
        if one.id in kept:
            raise Conflict(f"the output of {name} is kept", f"`riseml keep --no {name}` lets it go")
