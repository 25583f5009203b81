"""What the server knows about the experiments and sets that others wait for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.states import SENTENCES, Reason, State
from riseml.control.observation import PredecessorObservation
from riseml.model import Experiment, InputFolder, Plan, Predecessor, SearchEnd, SearchPlan, World
from riseml.planning.plan import first_jobs
from riseml.server.app import Application
from riseml.server.predecessor_states import find_lost_inputs, observe_predecessors
from riseml.spec.config.types import Goal, Parameter, SearchMethod, SearchSection
from riseml.store.insertion import NewExperiments, NewSearch
from tests.support.callers import ME
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.server.stored_experiments import NOW, add_experiment, open_application

PLAN = make_plan("train")


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    with open_application(tmp_path) as made:
        yield made


def wait_for(predecessor: Predecessor, plan: Plan = PLAN) -> Experiment:
    return make_experiment(99, replace(plan, after=(predecessor,)))


def look(application: Application, predecessor: Predecessor) -> PredecessorObservation:
    """Return what a pass sees of a predecessor, with and without its record among the open ones."""
    stores = application.services.stores
    world = World((*stores.experiments.load_world().experiments, wait_for(predecessor)))
    seen = observe_predecessors(world, stores)[predecessor]
    assert observe_predecessors(World((wait_for(predecessor),)), stores)[predecessor].state is seen.state
    return seen


@pytest.mark.parametrize("state", [State.RUNNING, State.FINISHED, State.FAILED, State.KILLED])
def test_an_experiment_has_its_state_and_is_complete_when_it_is_closed(application: Application, state: State) -> None:
    for closed in (False, True):
        first = add_experiment(application.services.stores, PLAN, state, closed=closed)
        seen = look(application, Predecessor(first.id, ME.user, first.number))
        assert seen == PredecessorObservation(state, SENTENCES[Reason.SUBMITTED], closed)


def end(application: Application, experiment: Experiment, state: State) -> None:
    current = application.services.stores.experiments.get_record(experiment.id)
    jobs = tuple(replace(job, state=state, started_at=NOW) for job in current.jobs)
    after = replace(current, state=state, jobs=jobs, closed=True, started_at=NOW)
    assert application.services.stores.experiments.save_decision(current, after, NOW)


def test_a_set_ends_with_its_last_experiment_and_a_search_when_it_makes_no_further_trial(
    application: Application,
) -> None:
    stores = application.services.stores
    member = (PLAN, first_jobs(PLAN))
    new = NewExperiments(ME.owner, PLAN.project, "", "", (member, member), concurrency=2)
    grid, _ = stores.experiments.add_experiments(new, NOW)
    first, second = (detail.experiment for detail in grid)
    whole = Predecessor(first.id, ME.user, first.number, set_id=first.set_id)
    end(application, first, State.FAILED)
    assert look(application, whole).state is State.RUNNING
    end(application, second, State.FINISHED)
    assert look(application, whole) == PredecessorObservation(State.FINISHED, SENTENCES[Reason.COMPLETED], closed=True)
    assert look(application, Predecessor(first.id, ME.user, first.number, 1)).state is State.FAILED

    section = SearchSection(SearchMethod.RANDOM, "loss", Goal.MINIMIZE, trials=2, seed=1)
    plan = SearchPlan(section, (Parameter("x", ("1", "2")),))
    point = replace(PLAN, parameters=(("x", "1"),))
    new = NewExperiments(
        ME.owner,
        PLAN.project,
        "",
        "",
        ((point, first_jobs(point)),),
        concurrency=1,
        search=NewSearch(plan, (((), PLAN),)),
    )
    ((trial,), _) = stores.experiments.add_experiments(new, NOW)
    search = Predecessor(trial.experiment.id, ME.user, trial.experiment.number, set_id=trial.experiment.set_id)
    end(application, trial.experiment, State.FINISHED)
    seen = look(application, search)
    assert (seen.state, seen.closed) == (State.RUNNING, False), "another trial follows"
    (record,) = stores.searches.load_open()
    assert stores.searches.end_search(record, SearchEnd.EXHAUSTED)
    assert look(application, search).state is State.FINISHED


def test_an_input_is_missed_once_all_have_ended_and_only_where_the_server_sees_outputs(
    application: Application, tmp_path: Path
) -> None:
    stores, hosts = application.services.stores, application.services.hosts
    first = add_experiment(stores, PLAN, State.FINISHED, closed=True)
    predecessor = Predecessor(first.id, ME.user, first.number, has_input=True)
    folder = tmp_path / "output" / "paul" / "toaster" / "1"
    source = InputFolder("model", "paul/toaster/1", "model")
    world = World((wait_for(predecessor, replace(PLAN, inputs=(source,))),))
    seen = observe_predecessors(world, stores)
    assert find_lost_inputs(world, seen, hosts) == {99: "model: the output folder paul/toaster/1 has no model"}
    whole = World((wait_for(predecessor, replace(PLAN, inputs=(replace(source, path=""),))),))
    assert find_lost_inputs(whole, seen, hosts) == {99: "model: the output folder paul/toaster/1 is not there"}
    goes_on = {predecessor: replace(seen[predecessor], closed=False)}
    assert find_lost_inputs(world, goes_on, hosts) == {}
    (folder / "model").mkdir(parents=True)
    assert find_lost_inputs(world, seen, hosts) == find_lost_inputs(whole, seen, hosts) == {}
    (folder / "model").rmdir()
    for target in (tmp_path, tmp_path / "nothing"):
        (folder / "link").symlink_to(target)
        behind = World((wait_for(predecessor, replace(PLAN, inputs=(replace(source, path="link/missing"),))),))
        assert find_lost_inputs(behind, seen, hosts) == {}, "the server looks through no link of a job"
        (folder / "link").unlink()
    (folder / "model").touch()
    assert find_lost_inputs(world, seen, hosts) == {}
    below = World((wait_for(predecessor, replace(PLAN, inputs=(replace(source, path="model/file"),))),))
    assert 99 in find_lost_inputs(below, seen, hosts)
