"""A search over a store of its own, whose experiments begin, report and end as a test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from riseml.analysis.ranking import Objective
from riseml.analysis.run_value import RunValue
from riseml.base.errors import StoreError
from riseml.base.names import JobName
from riseml.base.states import JobDuty, Reason, State
from riseml.model import Image, JobKey, Lineage, Owner, Plan, PlannedJob, SearchPlan, SearchRecord, Trial
from riseml.planning.generations import make_lineage
from riseml.planning.plan import first_jobs
from riseml.planning.repetition import add_seed, find_first_seed
from riseml.planning.trial_plan import plan_trial
from riseml.searches.propose import choose_first_point
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.search_loop import SearchLoop, SearchLoopParts
from riseml.server.reconcile.wake import Wake
from riseml.spec.config.types import (
    Distribution,
    Goal,
    Limits,
    Parameter,
    Resources,
    Scale,
    SearchMethod,
    SearchSection,
)
from riseml.store.codec import to_json
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments, NewSearch
from riseml.store.schema import experiments, jobs
from riseml.store.searches import SearchStore

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
LR = Parameter("lr", (), Distribution(Scale.LOG, 1e-5, 0.1))
UNITS = Parameter("units", (), Distribution(Scale.INT, 16, 256, 16))
DROPOUT = Parameter("dropout", (), Distribution(Scale.UNIFORM, 0.0, 0.5, 0.1))
LAYERS = Parameter("layers", ("2", "3", "4"))
EPOCHS = Parameter("epochs", ("10",))
PAUL = Owner("paul", 1000, 1000)


@dataclass(slots=True)
class ReportedMetrics:
    """Metrics that a test reports: (experiment, step, value)."""

    reports: list[tuple[int, int, float]] = field(default_factory=list)
    read: dict[int, int] = field(default_factory=dict)
    unreadable: int | None = None  # the experiment whose metrics cannot be read

    def find_value(self, experiment: int, objective: Objective) -> float | None:
        run = RunValue(objective.goal, objective.rule)
        for _, step, value in filter(lambda report: report[0] == experiment, self.reports):
            run.add(value, step)
        return run.find_value()

    def read_steps(self, experiment: int, objective: Objective) -> tuple[tuple[int, float], ...]:
        if experiment == self.unreadable:
            raise StoreError("the metrics cannot be read")
        run = RunValue(objective.goal, objective.rule)
        mine = list[tuple[int, float]]()
        for _, step, value in filter(lambda report: report[0] == experiment, self.reports):
            run.add(value, step)
            mine.append((step, run.find_so_far()))
        new = mine[self.read.get(experiment, 0) :]
        self.read[experiment] = len(mine)
        return tuple(new)

    def forget(self, experiment: int) -> None:
        self.read.pop(experiment, None)


@dataclass(slots=True)
class WholeLogs:
    """Knows the experiments whose logs a test calls whole."""

    whole: set[int] = field(default_factory=set)

    def is_job_finished(self, key: JobKey) -> bool:
        return key.experiment in self.whole


def make_search(method: SearchMethod = SearchMethod.RANDOM, trials: int = 6, **options: object) -> SearchSection:
    """Return a search that maximizes `accuracy` with the seed 7."""
    known: dict[str, object] = {"seed": 7, "goal": Goal.MAXIMIZE, **options}
    return SearchSection(method=method, metric="accuracy", trials=trials, **known)  # type: ignore[arg-type]  # values by name


class SearchRig:
    """One set with a search."""

    def __init__(
        self,
        database: Database,
        search: SearchSection,
        parameters: tuple[Parameter, ...],
        concurrency: int = 1,
        seeds: tuple[str, ...] = (),
        owner: Owner = PAUL,
    ) -> None:
        self.database = database
        self.experiments = ExperimentStore(database)
        self.searches = SearchStore(database)
        self.metrics = ReportedMetrics()
        self.logs = WholeLogs()
        plan = SearchPlan(search, parameters, seeds)
        job = PlannedJob(JobName("train"), JobDuty.DECIDES, Resources(), Limits(), ("t",))
        templates = (((), Plan("x", Image("python"), (job,), "plain")),)
        point = add_seed(choose_first_point(plan), find_first_seed(plan))
        first = self._plan = plan_trial(templates, point, lineage=make_lineage(plan, 1))
        new = NewSearch(plan, templates)
        submitted = NewExperiments(
            owner, "x", "", "", ((first, first_jobs(first)),), concurrency=concurrency, search=new
        )
        details, _ = self.experiments.add_experiments(submitted, NOW)
        assert details[0].experiment.set_id is not None
        self.set_id = details[0].experiment.set_id
        self.restart()

    def restart(self) -> None:
        """Lose everything but the store, as a server does that is killed."""
        self.metrics.read = {}
        self.searches = SearchStore(self.database)
        self.loop = SearchLoop(self.make_desk(self.searches))

    def make_desk(self, searches: SearchStore) -> SearchLoopParts:
        return SearchLoopParts(self.experiments, searches, self.metrics, self.logs, Notifier(), Wake(), Wake())

    def record(self) -> SearchRecord:
        return self.searches.load_searches((self.set_id,))[self.set_id]

    def trial(self, number: int) -> Trial:
        return self.record().trials[number - 1]

    def lineage(self, number: int) -> Lineage | None:
        return self.experiments.get_experiment(self.trial(number).experiment).experiment.plan.lineage

    def place(self, number: int) -> None:
        self._update(number, placed_at=NOW, state=State.RUNNING.value)

    def report(self, number: int, value: float, step: int = 1) -> None:
        self.metrics.reports.append((self.trial(number).experiment, step, value))

    def end(
        self, number: int, state: State = State.FINISHED, reason: Reason = Reason.COMPLETED, *, closed: bool = True
    ) -> None:
        self._update(number, placed_at=NOW, state=state.value, reason=reason.value, ended_at=NOW, closed=closed)

    def run_job(self, number: int) -> None:
        """Let the job of a trial have run."""
        job = {**to_json(first_jobs(self._plan)[-1]), "started_at": NOW.isoformat()}
        here = jobs.c.experiment_id == self.trial(number).experiment, jobs.c.name == "train"
        with self.database.write_transaction() as connection:
            connection.execute(jobs.update().where(*here).values(record=job))

    def _update(self, number: int, **values: object) -> None:
        with self.database.write_transaction() as connection:
            here = experiments.c.id == self.trial(number).experiment
            connection.execute(experiments.update().where(here).values(**values))
