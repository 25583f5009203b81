"""The secrets of runs: given to their jobs when they start, and masked in what is kept of them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from riseml.base.errors import RisemlError
from riseml.base.masks import Masker
from riseml.base.records import dataclass
from riseml.model import Environment, Experiment, Launch, World
from riseml.server.clock import now
from riseml.spec.scalars.secret_names import looks_secret
from riseml.store.sealed_variables import VariableSeals
from riseml.store.secret_store import SecretStore

Failure = TypeVar("Failure", bound=RisemlError)


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run that starts, with the values that only its launches have."""

    experiment: Experiment  # its variables with their values
    files: Environment  # names of files in memory, and what they hold

    def add_files(self, launch: Launch) -> Launch:
        """Return the launch of a job with the secrets that it reads as files."""
        return replace(launch, secrets=self.files) if self.files else launch


class RunSecrets:
    """The secrets of the open runs of one server. Safe from many threads.

    Args:
        store: of all secrets.
        seals: open the variables of users.
    """

    def __init__(self, store: SecretStore, seals: VariableSeals) -> None:
        self._store = store
        self._seals = seals
        self._lock = threading.Lock()
        self._open = store.list_runs()  # runs with something to mask
        self._maskers: dict[int, Masker] = {}

    def note_world(self, world: World) -> None:
        """Note which runs are open, and forget those that are closed."""
        with self._lock:
            secret = frozenset(
                experiment.id
                for experiment in world.experiments
                if experiment.id in self._open or _has_secrets(experiment)
            )
            self._open = secret
            for identity in [identity for identity in self._maskers if identity not in secret]:
                del self._maskers[identity]

    def open_run(self, experiment: Experiment) -> OpenedRun:
        """Return a run with the newest values of its secrets, which its log does not show from now on.

        Raises:
            NotFound: a secret is not set any more.
            EngineError: a value does not open.
        """
        passed = self._seals.open(experiment)
        plan = experiment.plan
        hidden = tuple((name, value) for name, value in passed if looks_secret(name) and value)
        if not plan.secret_names and not hidden:
            return OpenedRun(replace(experiment, environment=passed), ())
        owners = self._store.list_run_owners(experiment)
        values = self._store.take_secrets(owners, plan.secret_names, experiment.id, now(), hidden)
        with self._lock:
            self._open |= {experiment.id}
            self._maskers.pop(experiment.id, None)
        own = tuple((name, values[secret]) for name, secret in plan.secret_variables)
        files = tuple((file.file, values[file.name]) for file in plan.policy.secrets)
        return OpenedRun(replace(experiment, environment=(*passed, *own)), files)

    def find_masker(self, experiment: int) -> Masker | None:
        """Return what masks the values that a run has been given; None: it has none.

        Raises:
            StoreError: the store cannot be read.
            EngineError: a value does not open.
        """
        if experiment not in self._open:
            return None
        with self._lock:
            masker = self._maskers.get(experiment)
        if masker is None:
            masker = Masker(self._store.read_run_values(experiment))
            with self._lock:
                self._maskers[experiment] = masker
        return None if masker.is_empty else masker

    def erase_run(self, experiment: int) -> bool:
        """Erase the values of a run that is closed. Return True when there were some."""
        return experiment in self._open and self._store.erase_run(experiment)

    def mask_text(self, experiment: int, text: str) -> str:
        """Return a text about a run without its values."""
        masker = self.find_masker(experiment) if text else None
        return text if masker is None else masker.mask_text(text)

    @contextmanager
    def mask_failures(self, experiment: int) -> Iterator[None]:
        """Raise errors of what is done for a run without its values."""
        try:
            yield
        except RisemlError as error:
            masked = self._mask_failure(experiment, error)
            if masked is error:
                raise
            raise masked from None

    def _mask_failure(self, experiment: int, error: Failure) -> Failure:
        message = self.mask_text(experiment, error.message)
        hint = None if error.hint is None else self.mask_text(experiment, error.hint)
        if (message, hint) == (error.message, error.hint):
            return error
        masked = copy.copy(error)
        masked.args = (message,)
        masked.message = message
        masked.hint = hint
        return masked


def _has_secrets(experiment: Experiment) -> bool:
    return bool(experiment.plan.secret_names) or any(looks_secret(name) for name, _ in experiment.environment)
