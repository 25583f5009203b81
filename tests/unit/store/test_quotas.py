"""Submissions above a quota are refused, also when many come at once, and places are written with their decisions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from riseml.base.errors import Refused
from riseml.base.roles import Role, Scope
from riseml.base.states import State
from riseml.control.quotas import Account, AccountKind, OwnQuota
from riseml.control.usage import PlaceSpan
from riseml.model import Caller, Experiment, Owner
from riseml.planning.plan import first_jobs
from riseml.spec.config.types import Resources
from riseml.spec.server.types import QuotaDefaults, QuotaLimits
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.placements import PlacementStore, write_places
from riseml.store.quota_admission import NOTHING_MEASURED, MeasuredBytes, QuotaAdmission
from riseml.store.quotas import QuotaStore
from tests.unit.control.simulation import change_policy, make_plan
from tests.unit.store.submissions import NOW

PAUL = Account(AccountKind.USER, "paul")
VISION = Account(AccountKind.PROJECT, "vision")
SIZES = {"a": 600, "b": 600, "c": 100}


def new(user: str = "paul", count: int = 1, snapshot: str = "", **fields: object) -> NewExperiments:
    """A submission; `gpus` and `priority` are of its plans."""
    gpus, priority = int(str(fields.pop("gpus", 1))), int(str(fields.pop("priority", 0)))
    plan = change_policy(make_plan("train", resources={"train": Resources(1, 64, gpus)}), priority=priority)
    plans = ((plan, first_jobs(plan)),) * count
    concurrency = None if count == 1 else 2
    made = NewExperiments(Owner(user, 2000, 2000), "quick", "", snapshot, plans, concurrency=concurrency)
    return replace(made, **fields)  # type: ignore[arg-type]  # the fields, by name


def admission(limits: QuotaLimits, measured: MeasuredBytes = NOTHING_MEASURED, **of_project: int) -> QuotaAdmission:
    defaults = QuotaDefaults(user=limits, project=QuotaLimits(**of_project))
    return QuotaAdmission(defaults, SIZES.__getitem__, lambda account: measured)


@pytest.mark.parametrize(
    ("limits", "submitted", "message"),
    [
        (QuotaLimits(gpus=4), new(gpus=8), "this can never start: it needs 8 GPUs, and paul may use 4 GPUs"),
        (QuotaLimits(gpus=0), new(priority=-1), "this can never start: it needs 1 GPU, and paul may use 0 GPUs"),
        (QuotaLimits(waiting=3), new(count=4), "paul may have 3 experiments that wait, and has 0: 4 more are too many"),
        (
            QuotaLimits(project_bytes=500),
            new(snapshot="a"),
            "the project files of paul would take 600 B, and the quota",
        ),
        (QuotaLimits(log_bytes=10), new(), "the logs of paul take 20 B, and the quota is 10 B"),
        (QuotaLimits(output_bytes=30), new(), "the outputs of paul take 30 B, and the quota is 30 B"),
    ],
)
def test_a_submission_above_a_quota_is_refused_and_nothing_is_stored(
    experiments: ExperimentStore, limits: QuotaLimits, submitted: NewExperiments, message: str
) -> None:
    gate = admission(limits, MeasuredBytes(20, 30))
    with pytest.raises(Refused, match="^" + message):
        experiments.add_experiments(submitted, NOW, admit=gate.admit)
    assert experiments.load_world().experiments == ()
    experiments.add_experiments(new(gpus=0), NOW)


def test_states_of_projects_count_once_and_what_borrows_needs_no_quota(experiments: ExperimentStore) -> None:
    gate = admission(QuotaLimits(project_bytes=700, gpus=1))
    for snapshot in ("a", "a", "c"):
        experiments.add_experiments(new(snapshot=snapshot, gpus=4, priority=-1), NOW, admit=gate.admit)
    with pytest.raises(Refused, match=r"would take 1\.27 KiB, and the quota is 700 B"):
        experiments.add_experiments(new(snapshot="b"), NOW, admit=gate.admit)
    experiments.add_experiments(new("anna", snapshot="b"), NOW, admit=gate.admit)


def test_a_quota_of_its_own_goes_before_the_default_and_a_project_has_one(
    database: Database, experiments: ExperimentStore
) -> None:
    quotas = QuotaStore(database)
    gate = admission(QuotaLimits(waiting=1), waiting=2)
    assert quotas.change(PAUL, {"waiting": None, "gpus": 4}) == OwnQuota({"waiting": None, "gpus": 4})
    quotas.change(VISION, {}, weight=2.0)
    for user in ("paul", "anna"):
        experiments.add_experiments(new(user, team_project="vision"), NOW, admit=gate.admit)
    with pytest.raises(Refused, match="the project vision may have 2 experiments that wait"):
        experiments.add_experiments(new(team_project="vision"), NOW, admit=gate.admit)
    experiments.add_experiments(new(), NOW, admit=gate.admit)
    assert quotas.change(PAUL, {}, ["waiting"]).limits == {"gpus": 4}
    with pytest.raises(Refused, match="paul may have 1 experiments that wait, and has 2"):
        experiments.add_experiments(new(), NOW, admit=gate.admit)
    assert quotas.load() == {PAUL: OwnQuota({"gpus": 4}), VISION: OwnQuota(weight=2.0)}


def test_many_submissions_at_once_never_exceed_a_quota(experiments: ExperimentStore) -> None:
    gate = admission(QuotaLimits(waiting=5), waiting=8)

    def submit(number: int) -> bool:
        with suppress(Refused):
            submitted = new("anna" if number % 2 else "paul", team_project="vision" if number % 3 else None)
            experiments.add_experiments(submitted, NOW, admit=gate.admit)
            return True
        return False

    with ThreadPoolExecutor(8) as workers:
        accepted = list(workers.map(submit, range(40)))
    made = experiments.load_world().experiments
    assert sum(accepted) == len(made)
    assert max(sum(one.owner.user == user for one in made) for user in ("paul", "anna")) == 5
    assert sum(one.team_project == "vision" for one in made) <= 8


def place(experiment: Experiment, moment: int) -> Experiment:
    return replace(experiment, placed_at=NOW + timedelta(seconds=moment), state=State.STARTING)


def give_back(experiment: Experiment, moment: int) -> Experiment:
    at = NOW + timedelta(seconds=moment)
    return replace(experiment, placed_at=None, state=State.PENDING, waits_since=at)


def end(experiment: Experiment, moment: int) -> Experiment:
    return replace(experiment, state=State.FINISHED, ended_at=NOW + timedelta(seconds=moment))


class Killed(BaseException):
    """The server dies within a transaction."""


@pytest.mark.parametrize("seed", range(20))
def test_places_are_those_of_the_records_however_often_the_server_is_killed(
    database: Database, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is killed in a save repeats the decision: the place is counted once, and is not lost."""
    random = Random(seed)

    def write_or_die(*arguments: object) -> None:
        if random.random() < 0.4:
            raise Killed
        write_places(*arguments)  # type: ignore[arg-type]  # passed on
        if random.random() < 0.3:
            raise Killed

    monkeypatch.setattr("riseml.store.experiments.write_places", write_or_die)
    (detail,), _ = ExperimentStore(database).add_experiments(new(gpus=2), NOW)
    identity = detail.experiment.id
    expected: list[tuple[int, int]] = []
    moment = 0
    for step in range(3):
        changes = (place, end if step == 2 else give_back)
        for change in changes:
            moment += random.randint(1, 50)
            while True:
                store = ExperimentStore(database)
                before = store.get_experiment(identity).experiment
                with suppress(Killed):
                    assert store.save_decision(before, change(before, moment), NOW + timedelta(seconds=moment + 5))
                    break
            expected.append((moment, moment)) if change is place else expected.append((expected.pop()[0], moment))
    admin = Caller(Owner("ann", 1, 1), Role.ADMIN, Scope.ADMIN)
    records = PlacementStore(database).load_since(NOW, admin)
    spans = [PlaceSpan(NOW + timedelta(seconds=a), NOW + timedelta(seconds=b), 2, 1.0) for a, b in expected]
    assert [record.span for record in records] == spans
    assert list(PlacementStore(database).load_ended(NOW)) == [("paul", span) for span in spans]
    waits = [record.waited_since for record in records]
    assert waits == [detail.experiment.created_at, *(span.ended_at for span in spans[:-1])]
    foreign = Caller(Owner("anna", 1, 1), Role.MEMBER, Scope.RUN)
    assert PlacementStore(database).load_since(NOW, foreign) == ()
