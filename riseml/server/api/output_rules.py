"""Check whether an output, or a part of it, may be removed."""

from __future__ import annotations

from riseml.base.errors import Conflict
from riseml.base.names import CanonicalId, experiment_name
from riseml.files.storage_files import StorageFiles
from riseml.model import Caller
from riseml.server.api.views.named_experiments import find_details
from riseml.server.services import Stores

_FULL = 16 << 20
"""A disk with fewer free bytes is full: what runs there gets errors, or will soon."""


def check_removable(
    canonical_id: CanonicalId, caller: Caller, stores: Stores, files: StorageFiles | None = None
) -> None:
    """Check that the output of an experiment, or of every experiment of a set, may be removed.

    Args:
        canonical_id: the experiment, or the set.
        stores: of the server.
        files: of the output, when a part of it is to be removed. That is allowed while the experiment runs if the disk
            is full: nothing else would help.

    Raises:
        Conflict: an experiment runs, or its output is kept.
    """
    kept_ids = stores.kept_outputs.load_kept()
    for detail in find_details(canonical_id, caller, stores):
        experiment = detail.experiment
        name = experiment_name(experiment.number, experiment.sub)
        if experiment.id in kept_ids:
            raise Conflict(f"the output of {name} is kept", f"`riseml keep --no {name}` allows its removal")
        if not experiment.closed and (files is None or files.count_free() >= _FULL):
            raise Conflict(
                f"experiment {name} has not ended, and nothing of its output is removed",
                f"`riseml kill {name}` ends it; or wait for its end",
            )
