"""The loop of searches: load, decide, act. It is separate from the control loop, because choosing a point may take a
second.

It is level-triggered, as the control loop is: its steps follow from the records alone (`control.search_steps`). So the
next server continues with exactly the same trials, whenever this one is killed. Every step is one transaction; a
repeated step finds its work done.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from riseml.analysis.ranking import find_objective, list_objectives, make_limit
from riseml.base.errors import StoreError
from riseml.base.faultpoints import Point, reach
from riseml.base.records import dataclass
from riseml.control.search_steps import AskTrial, EndSearch, SearchStep, TellTrial, decide_search
from riseml.model import JobKey, SearchEnd, SearchRecord, Trial, TrialOutcome
from riseml.planning.generations import make_lineage
from riseml.planning.plan import first_jobs
from riseml.planning.repetition import add_seed, find_next_run, fold_record
from riseml.planning.trial_plan import Template, plan_trial
from riseml.searches.propose import Proposer, find_parent
from riseml.searches.stopping import StopJudge, find_checkpoints
from riseml.server.clock import now
from riseml.server.log_line import LogLine, write_line
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.trial_metrics import TrialMetrics
from riseml.server.reconcile.wake import Wake
from riseml.spec.config.conditions import list_constrained_metrics, measure_excess
from riseml.spec.config.types import SearchSection, StopRule, ValueKind
from riseml.store.experiments import ExperimentStore
from riseml.store.searches import NewTrial, SearchStore, ToldTrial

_POLL = 30.0  # seconds between two passes when nothing wakes the loop

log = logging.getLogger(__name__)


class JobLogs(Protocol):
    """The logs of jobs, as far as the loop reads them."""

    def is_job_finished(self, key: JobKey) -> bool:
        """Return True when the log of this attempt of a job is complete; False also when it is not known any more."""


@dataclass(slots=True)
class _Running:
    """A cache of the loop for one search; it only saves time."""

    proposer: Proposer
    judge: StopJudge | None = None
    templates: tuple[Template, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchLoopParts:
    """The parts of the server that the loop of searches uses."""

    experiments: ExperimentStore
    searches: SearchStore
    metrics: TrialMetrics
    logs: JobLogs
    notifier: Notifier
    wake: Wake  # asks for a pass of this loop
    loop_wake: Wake  # asks the control loop for a pass


class SearchLoop(threading.Thread):
    """Makes, judges and ends the trials of all searches; a server has one."""

    def __init__(self, desk: SearchLoopParts) -> None:
        super().__init__(name="searches", daemon=True)
        self._desk = desk
        self._stopping = threading.Event()
        self._running: dict[int, _Running] = {}  # by the key of the set
        self._has_problem = False

    def run(self) -> None:
        pause = 0.0
        while not self._stopping.is_set():
            self._desk.wake.wait(pause)
            pause = self._try_pass()

    def stop(self) -> None:
        """End the loop after the present step."""
        self._stopping.set()
        self._desk.wake.set()
        if self.is_alive():
            self.join(timeout=2.0)

    def _try_pass(self) -> float:
        """Run one pass, and return the seconds until the next one at the latest. Nothing ends the loop."""
        try:
            self.run_pass()
        except StoreError as error:
            if not self._has_problem:
                log.warning("a search does not go on: %s (%s)", error.message, error.hint)
            self._has_problem = True
            return 2.0
        except Exception:
            log.exception("a pass of the searches failed; the next one follows")
            return 2.0
        self._has_problem = False
        return _POLL

    def run_pass(self) -> None:
        """Take every step that is possible now. An error in one search does not stop the others.

        Raises:
            Exception: the first error.
        """
        self._desk.experiments.confirm_sole_server()
        while not self._stopping.is_set():
            records = tuple(map(self._close_whole_trials, self._desk.searches.load_open()))
            self._running = {record.id: self._find_running(record) for record in records}
            problems: list[Exception] = []
            # a list, so that each search takes its step
            steps = [self._try_advance(record, problems) for record in records]
            if not any(steps):
                if problems:
                    raise problems[0]
                return

    def _close_whole_trials(self, record: SearchRecord) -> SearchRecord:
        """Return a search whose trials count as closed as soon as they have ended and their logs are whole.

        The next trial does not wait until the folders and containers of the last one are removed.
        """
        if not any(trial.ended and not trial.closed for trial in record.live):
            return record
        trials = (replace(trial, closed=True) if self._has_whole_log(trial) else trial for trial in record.trials)
        return replace(record, trials=tuple(trials))

    def _has_whole_log(self, trial: Trial) -> bool:
        """Return True when a trial has ended, and the logs of all its attempts are complete."""
        if trial.closed or not trial.ended or trial.outcome is not None:
            return False
        experiment = self._desk.experiments.get_record(trial.experiment)
        return all(
            job.started_at is not None and self._desk.logs.is_job_finished(JobKey(experiment.id, job.name, attempt))
            for job in experiment.gang
            for attempt in range(1, job.attempt + 1)
        )

    def _find_running(self, record: SearchRecord) -> _Running:
        running = self._running.get(record.id)
        return _Running(Proposer(record.plan)) if running is None else running

    def _try_advance(self, record: SearchRecord, problems: list[Exception]) -> bool:
        """Advance a search; add its error to `problems`."""
        try:
            return self._advance_search(record)
        except Exception as error:  # noqa: BLE001  # the caller raises it
            problems.append(error)
            return False

    def _advance_search(self, record: SearchRecord) -> bool:
        """Judge the trials of a search and take its next steps; False when nothing is left to do."""
        self._judge_trials(record)
        return any([self._perform(step, record) for step in decide_search(record)])

    def _perform(self, step: SearchStep, record: SearchRecord) -> bool:
        match step:
            case AskTrial():
                return self._make_trial(record)
            case TellTrial(_, number):
                return self._store_result(record, record.trials[number - 1])
            case EndSearch(_, end):
                return self._end_search(record, end)

    def _make_trial(self, record: SearchRecord) -> bool:
        """Make the next trial. Return False when none can be made now."""
        reach(Point.ASKING)
        running = self._running[record.id]
        following = find_next_run(record)
        if following is None:
            return False
        try:
            point = following.point or running.proposer.propose_point(fold_record(record).trials)
        except Exception:
            log.exception("riseml failed to choose a point for set %s", record.number)
            self._running[record.id] = _Running(Proposer(record.plan))
            return not record.live and self._end_search(record, SearchEnd.BROKEN)
        if point is None:
            return not record.live and self._end_search(record, SearchEnd.EXHAUSTED)
        if self._stopping.is_set():
            return False
        running.templates = running.templates or self._desk.searches.load_templates(record.id)
        told_count = sum(trial.told is not None for trial in record.trials)
        run_point = add_seed(point, following.seed)
        parent = find_parent(record.plan, record.trials)
        lineage = make_lineage(record.plan, following.point_number, parent)
        plan = plan_trial(running.templates, run_point, record.plan.parameters, lineage)
        new = NewTrial(len(record.trials) + 1, plan, first_jobs(plan), told_count, following.point_number)
        identity = self._desk.searches.add_trial(record.id, new, now())
        reach(Point.ASKED)
        if identity is not None:
            values = ", ".join(f"{name}={value}" for name, value in plan.parameters)
            trial = f"trial {following.point_number} of {record.most_trials}: {values}"
            origin = f", continues {record.number}.{parent.number}" if parent is not None else ""
            self._log_step(record, f"{record.number}.{new.number} {trial}{origin}")
            self._publish(record)
        return identity is not None

    def _store_result(self, record: SearchRecord, trial: Trial) -> bool:
        search = record.plan.search
        find_value = self._desk.metrics.find_value
        values = {objective.metric: find_value(trial.experiment, objective) for objective in list_objectives(search)}
        limited = {
            name: find_value(trial.experiment, make_limit(name))
            for name in list_constrained_metrics(record.plan.parameters, search.constraints)
        }
        result = judge_end(trial, values, limited, search)
        reach(Point.TELLING)
        is_new = self._desk.searches.tell_trial(record.id, result)
        reach(Point.TOLD)
        if is_new:
            self._desk.metrics.forget(trial.experiment)
            reported = ", ".join(f"{name} {value:g}" for name, value in values.items() if value is not None)
            explanation = f"{result.message or reported}{', beyond the constraints' if result.excess else ''}"
            self._log_step(record, f"{record.number}.{trial.number} counts as {result.outcome.value}: {explanation}")
            self._publish(record)
        return is_new

    def _end_search(self, record: SearchRecord, end: SearchEnd) -> bool:
        is_new = self._desk.searches.end_search(record, end)
        if is_new:
            self._desk.experiments.note_erasing()
            self._log_step(record, f"{record.number} search ended: {end.value}")
            self._publish(record)
        return is_new

    def _judge_trials(self, record: SearchRecord) -> None:
        """Compare the running trials at the steps that they have reached, and stop those that do worse than others."""
        rule = record.plan.search.stop
        if rule is None:
            return
        folded = fold_record(record)
        for trial in folded.live:  # of a point with several runs, the first one is compared
            run = record.trials[trial.first_run - 1]
            if run.stopped or run.closed or not run.placed:
                continue
            try:
                self._judge_trial(folded, trial, rule)
            except BaseException:  # forget the cache: the comparison was not saved, so the next pass repeats it
                self._running[record.id].judge = None
                self._desk.metrics.forget(trial.experiment)
                raise

    def _judge_trial(self, record: SearchRecord, trial: Trial, rule: StopRule) -> None:
        """Compare one trial of a record with a trial for each point."""
        running = self._running[record.id]
        steps = self._desk.metrics.read_steps(trial.experiment, find_objective(record.plan.search))
        new = find_checkpoints(rule, steps, trial.reached)
        if not new:
            return
        if running.judge is None:
            running.judge = StopJudge(record.plan)
        running.judge.follow(record.trials)
        stops = running.judge.compare(trial.number, new)
        if stops:
            reach(Point.STOPPING)
        reached = (*trial.reached, *new)
        if not self._desk.searches.note_reached(record.id, trial.first_run, reached, stops=stops):
            running.judge = None  # drop the judge: it has compared values that the records do not have
        elif stops:
            reach(Point.STOPPED)
            step, value = new[-1]
            score = f"{record.plan.search.metric} {value:g} at step {step}"
            self._log_step(record, f"{record.number}.{trial.first_run} stopped early: {score}, others do better")
            self._publish(record)

    def _publish(self, record: SearchRecord) -> None:
        """Notify the control loop and the readers of the set's log that records have changed."""
        self._desk.loop_wake.set()
        if record.trials:
            self._desk.notifier.publish_records(record.trials[0].experiment)

    def _log_step(self, record: SearchRecord, text: str) -> None:
        write_line(log, LogLine(text, experiment=str(record.number)))


def judge_end(
    trial: Trial, values: Mapping[str, float | None], limited: Mapping[str, float | None], search: SearchSection
) -> ToldTrial:
    """Return the result of a trial that has ended. One that was stopped has a result also where no value counts yet; it
    is not the best one if it lacks a metric that a constraint names.

    Args:
        trial: that has ended.
        values: its value of each objective; None: it has none.
        limited: the last value of each metric that constraints name; None: it has none.
        search: says which values count.
    """
    if not trial.finished:
        return ToldTrial(trial.number, TrialOutcome.FAILED, None, "its experiment did not finish")
    was_compared = any(math.isfinite(reached) for _, reached in trial.reached)
    missing = [metric for metric, value in values.items() if value is None]
    unknown = [metric for metric, value in limited.items() if value is None]
    if (missing or unknown) and not (trial.stopped_early and was_compared):
        return ToldTrial(trial.number, TrialOutcome.FAILED, None, _explain_no_value(missing, unknown, search))
    outcome = TrialOutcome.STOPPED if trial.stopped_early else TrialOutcome.COMPLETE
    scores = tuple(value for value in values.values() if value is not None) if search.metrics else ()
    last = {metric: value for metric, value in limited.items() if value is not None}
    excess = measure_excess(search.constraints, trial.point, last) if limited and not unknown else 0.0
    value = values[find_objective(search).metric]
    return ToldTrial(trial.number, outcome, value, values=scores, excess=math.inf if unknown else excess)


def _explain_no_value(missing: Sequence[str], unknown: Sequence[str], search: SearchSection) -> str:
    """Return what a trial lacks: values of objectives, and of metrics that constraints name."""
    if missing and search.objective.kind is ValueKind.AT:
        metrics = " and no finite ".join(missing)
        return f"it reported no finite {metrics} at step {search.objective.number} or later"
    metrics = " and no ".join(dict.fromkeys((*missing, *unknown)))
    return f"it reported no {metrics}, or ended with nan or infinity"
