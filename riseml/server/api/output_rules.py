"""Check whether an output may be removed."""

from __future__ import annotations

from riseml.errors import Conflict
from riseml.names import CanonicalId, experiment_name
from riseml.server.api.views.named_experiments import find_details
from riseml.server.services import Services


def check_removable(wanted: CanonicalId, services: Services) -> None:
    """Check that the output of an experiment, or of every experiment of a set, may be removed.

    Raises:
        Conflict: an experiment runs, or its output is kept.
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
            raise Conflict(f"the output of {name} is kept", f"`riseml keep --no {name}` allows its removal")
