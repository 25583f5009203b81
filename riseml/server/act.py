"""Carry one action out. What goes wrong is raised; the books note it and the loop sees it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from riseml.control.actions import Action, CancelImage, EnsureImage, Prepare, Release, Remove, ShareImage, Start, Stop
from riseml.errors import EngineError
from riseml.executors.base import BuildOrder, Cancellation, Executor
from riseml.executors.pool import Pool
from riseml.model import Experiment, Frame, JobKey
from riseml.names import BUILD
from riseml.planning.launch import INSIDE, Folders, Place, make_launch
from riseml.server.clock import stamp
from riseml.server.news import News
from riseml.settings import Settings
from riseml.storage.outputs import output_path, prepare_output
from riseml.store.experiments import Experiments
from riseml.store.logs import Logs
from riseml.store.snapshots import Snapshots


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything that survives a restart."""

    experiments: Experiments
    logs: Logs
    snapshots: Snapshots


@dataclass(frozen=True, slots=True)
class Actor:
    """The hands of the loop."""

    settings: Settings
    server: str
    pool: Pool
    stores: Stores
    news: News
    orders: dict[EnsureImage, Cancellation] = field(default_factory=dict)

    def perform(self, action: Action, experiment: Experiment | None) -> None:
        """Do it.

        Args:
            action: what to do.
            experiment: the record that it belongs to; None when there is none any more.

        Raises:
            RisemlError: it did not work, or nothing is known of its effect.
        """
        executor = self.pool.executors[action.host]
        match action:
            case Stop(_, key, signal):
                executor.stop(key, signal)
            case Remove(_, key):
                executor.remove(key)
            case Release(_, owner):
                executor.release(owner)
            case CancelImage(host, owner, reference):
                order = self.orders.get(EnsureImage(host, owner, reference))
                if order is not None:
                    order.ask()
            case ShareImage(_, _, reference, source):
                executor.import_image(reference, self.pool.executors[source].export_image(reference))
            case EnsureImage() | Prepare() | Start():
                if experiment is None:
                    raise EngineError(f"experiment {action} is not in the store", permanent=True)
                self._advance(action, executor, experiment)
            case _:
                assert_never(action)

    def _advance(self, action: EnsureImage | Prepare | Start, executor: Executor, experiment: Experiment) -> None:
        match action:
            case EnsureImage():
                self._ensure_image(action, executor, experiment)
            case Prepare(_, owner, subnet):
                detail = self.stores.experiments.get(owner)
                prepare_output(self.settings.output, experiment, detail.config)
                self.settings.data.mkdir(parents=True, exist_ok=True)
                executor.prepare(owner, subnet)
            case Start(_, key):
                job = next(job for job in experiment.jobs if job.name == key.job)
                output = output_path(self.settings.output, experiment)
                outside = Folders(str(output), str(self.settings.data), str(Path.home()))
                place = Place(self.server, outside, INSIDE if executor.contained else outside)
                executor.start(make_launch(experiment, job, place), self._code(experiment))

    def _ensure_image(self, action: EnsureImage, executor: Executor, experiment: Experiment) -> None:
        key = JobKey(experiment.id, BUILD, 1)

        def emit(line: str) -> None:
            self.stores.logs.append(key, [Frame(stamp(), 1, line.encode() + b"\n")])
            self.news.publish(experiment.id)

        cancellation = self.orders.setdefault(action, Cancellation())
        try:
            executor.ensure_image(BuildOrder(experiment.plan.image, self._code(experiment), emit, cancellation))
        finally:
            self.orders.pop(action, None)

    def _code(self, experiment: Experiment) -> Path | None:
        return self.stores.snapshots.path(experiment.snapshot) if experiment.snapshot else None
