"""The dry run: the same steps as a submission, without storing anything."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from riseml import wire
from riseml.base.errors import RisemlError
from riseml.base.names import CanonicalId, HostName, experiment_name, show_framework
from riseml.base.records import dataclass
from riseml.base.states import JobDuty, State
from riseml.control.explain import explain_experiment
from riseml.control.observation import Observation
from riseml.control.placement.place import place_gangs
from riseml.control.predecessors import hold_back
from riseml.control.visible_names import name_seen
from riseml.files.storage.outputs import show_output
from riseml.model import Caller, Experiment, HostObservation, Image, Job, Owner, Plan, PlannedJob, World, resolve_base
from riseml.planning.grid import makes_set
from riseml.planning.launch import (
    JobFolders,
    bind_job,
    choose_shm_size,
    find_tf_config,
    job_command,
    job_folders,
    job_lines,
    job_variables,
)
from riseml.planning.plan import first_jobs
from riseml.server.api.submissions.submit import Planned, list_passed
from riseml.server.api.views.objective_view import show_goal, show_objectives
from riseml.server.hosts.environment_review import review_environment
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.observe import make_observation, observe_environment
from riseml.server.predecessor_states import observe_predecessors
from riseml.server.services import DataServices, Services, Stores
from riseml.spec.config.types import Spec

_PASSED = "\0"
"""Stands for a value from the user's environment, which no answer shows. A real value has no NUL character."""

log = logging.getLogger(__name__)


def show_plan(
    submission: wire.Submission, planned: Planned, caller: Caller, services: Services, moment: datetime
) -> wire.PlanView:
    """Return the jobs that would run, and where, if the user submitted now."""
    first = planned.plans[0]
    images = {image: _find_image(resolve_base(image, planned.resolved), services.hosts) for image in first.images}
    synced = "snapshot" in submission
    environments = {
        image: _show_environment(found_image, services.hosts, synced=synced) for image, found_image in images.items()
    }
    experiments = _make_experiments(planned, caller.owner, services.stores, moment)
    world, observation = _add_to_world(experiments, services, images[first.image].hosts, moment)
    observation = replace(observation, predecessors=observe_predecessors(world, services.stores))
    world = World(tuple(hold_back(experiment, observation) for experiment in world.experiments))
    world = replace(place_gangs(world, observation), reader=caller)
    candidates = world.experiments[-len(planned.plans) :]
    return {
        **environments[first.image],
        "project": planned.spec.project,
        "framework": show_framework(first.framework),
        "role_environments": [{**environments[image], "role": role} for role, image in first.role_images],
        "data": _show_data(first, list_passed(planned.spec.train), services.data),
        "save": _show_save(first, list_passed(planned.spec.train), services.data),
        "search": _show_search(planned),
        "experiments": [
            _show_experiment(candidate, _explain_wait(candidate, world, observation), services)
            for candidate in candidates
        ],
        "notes": list(planned.spec.notes),
    }


def _show_data(plan: Plan, passed: Sequence[str], data: DataServices) -> list[wire.PlanData]:
    alone = [(source, replace(plan.policy, data=(source,), save=None)) for source in plan.policy.data]
    return [
        {
            "url": source.url,
            "folder": source.folder,
            "refused": _find_refusal(replace(plan, policy=policy), passed, data),
        }
        for source, policy in alone
    ]


def _show_save(plan: Plan, passed: Sequence[str], data: DataServices) -> wire.PlanSave | None:
    if plan.policy.save is None:
        return None
    alone = replace(plan, policy=replace(plan.policy, data=(), store=""))
    return {"url": plan.policy.save.to, "refused": _find_refusal(alone, passed, data)}


def _find_refusal(plan: Plan, passed: Sequence[str], data: DataServices) -> str | None:
    try:
        data.fetcher.check_plans([plan], passed)
    except RisemlError as error:
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return None


def _show_search(planned: Planned) -> wire.PlanSearch | None:
    search = planned.spec.train.search
    if planned.search is None or search is None:
        return None
    return {
        "method": search.method.value,
        "metric": search.metric,
        "goal": show_goal(search.goal),
        "objectives": show_objectives(search),
        "trials": search.trials,
        "repeat": len(planned.spec.train.seeds) or 1,
        "concurrency": planned.spec.train.concurrency,
        "stop": None if search.stop is None else search.stop.method.value,
    }


@dataclass(frozen=True, slots=True)
class _FoundImage:
    """An image with its tag resolved now."""

    image: Image
    hosts: Mapping[HostName, HostObservation]  # every host that answers, with whether it has the image


def _find_image(image: Image, hosts: HostSet) -> _FoundImage:
    """Return the image with its tag resolved now.

    When several hosts have the tag, the first one counts, as in `control.settle.choose_builder`.
    """
    references = {image.reference} if image.resolved else {image.reference, image.base}
    observations = observe_environment(hosts, frozenset(references))
    if not image.resolved:
        tags = [host.images[image.base] for _, host in sorted(observations.items())]
        image = replace(image, resolved=next((tag.resolved for tag in tags if tag.present), ""))
    if any(image.reference not in host.images for host in observations.values()):
        observations = observe_environment(hosts, frozenset({image.reference}))
    return _FoundImage(image, observations)


def _show_environment(found_image: _FoundImage, hosts: HostSet, *, synced: bool) -> wire.PlanEnvironment:
    image = found_image.image
    review = review_environment(hosts, image)
    is_known = not image.install or synced  # an environment has no digest without the project's files
    cached = all(host.images[image.reference].present for host in found_image.hosts.values())
    return {
        "image": image.reference if is_known and image.install else image.base,
        "base": image.base,
        "install": list(image.install),
        "replaced_by": review.replaced_by or None,
        "cached": cached if is_known and found_image.hosts else None,
        "refused": review.refusal or None,
    }


def show_tf_configs(experiment: Experiment, canonical_id: CanonicalId, caller: Caller) -> wire.TfConfigs:
    """Return what the jobs that an ID names read as TF_CONFIG."""
    jobs = [job for job in experiment.gang if canonical_id.names(job.name)]
    name = name_seen(caller, experiment)
    return {"id": name, "configs": {job.name: find_tf_config(experiment, job) for job in jobs}}


def _make_experiments(planned: Planned, owner: Owner, stores: Stores, moment: datetime) -> tuple[Experiment, ...]:
    """Return the records as a submission would store them next, with their environments already built."""
    train = planned.spec.train
    last = stores.experiments.list_experiments(owner.user, ended=True, project=None, limit=1)
    number = 1 + max((detail.experiment.number for detail in last), default=0)
    experiments = tuple(
        Experiment(
            id=index,
            owner=owner,
            number=number,
            project=plan.project,
            plan=plan,
            jobs=tuple(replace(job, state=_first_state(job)) for job in first_jobs(plan)),
            created_at=moment,
            environment=_environment(planned.spec),
        )
        for index, plan in enumerate(planned.plans, 1)
    )
    if not makes_set(train):
        return experiments
    return tuple(
        replace(experiment, sub=experiment.id, set_id=0, concurrency=train.concurrency) for experiment in experiments
    )


def _first_state(job: Job) -> State:
    return State.FINISHED if job.part is JobDuty.PREPARES else State.PENDING


def _environment(spec: Spec) -> tuple[tuple[str, str], ...]:
    return tuple((row.name, _PASSED if row.value is None else row.value) for row in spec.train.env)


def _add_to_world(
    candidates: tuple[Experiment, ...], services: Services, hosts: Mapping[HostName, HostObservation], moment: datetime
) -> tuple[World, Observation]:
    """Return the world with these experiments as the newest, and the observation."""
    open_experiments = services.stores.experiments.load_world().experiments
    last = max((experiment.id for experiment in open_experiments), default=0)
    own_set = 1 + max((experiment.set_id or 0 for experiment in open_experiments), default=0)
    late = (
        replace(candidate, id=last + candidate.id, set_id=None if candidate.set_id is None else own_set)
        for candidate in candidates
    )
    return World((*open_experiments, *late)), make_observation(services.hosts, services.stores.drained, hosts, moment)


def _explain_wait(candidate: Experiment, world: World, observation: Observation) -> str | None:
    """Return why an experiment would not start at once; None when it would."""
    if candidate.placed_at is not None:
        return None
    return explain_experiment(world, observation, candidate)["summary"] if observation.hosts else "no host answers"


def _show_experiment(experiment: Experiment, waits: str | None, services: Services) -> wire.PlanExperiment:
    jobs = {job.name: job for job in experiment.jobs}
    return {
        "id": experiment_name(experiment.number, experiment.sub),
        "output": show_output(services.hosts.roots, experiment),
        "waits": waits,
        "parameters": dict(experiment.plan.parameters),
        "jobs": [_show_job(experiment, planned, jobs[planned.name], services.data) for planned in experiment.plan.jobs],
    }


def _show_job(experiment: Experiment, planned: PlannedJob, job: Job, data: DataServices) -> wire.PlanJob:
    bound = bind_job(experiment, job, _folders(experiment, job, data))
    variables = dict(job_variables(bound))
    return {
        "name": planned.name,
        "image": experiment.image_of(planned.name).base,
        "part": planned.part.value,
        "host": job.host,
        "cpus": planned.resources.cpus,
        "mem_mib": planned.resources.mem,
        "gpus": planned.resources.gpus,
        "gpu": planned.resources.gpu if planned.resources.gpus else "",
        "gpu_mem_mib": planned.resources.gpu_mem if planned.resources.gpus else None,
        "limit_cpus": planned.limits.cpus,
        "limit_mem_mib": planned.limits.mem,
        "shm_mib": choose_shm_size(experiment.plan, planned),
        "environment": {name: value for name, value in variables.items() if value != _PASSED},
        "passed_on": [name for name, value in variables.items() if value == _PASSED],
        "run": list(job_lines(bound)),
        "command": list(job_command(bound)),
    }


def _folders(experiment: Experiment, job: Job, data: DataServices) -> JobFolders:
    """Return the folders as the job sees them; without a place, as it would see them on the first host."""
    return job_folders(experiment, data.fetcher.find_target(experiment, job.host))
