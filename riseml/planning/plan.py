"""Make a plan from a spec and one point of its grid, and the job records of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from riseml.base.errors import UsageError
from riseml.base.names import BUILD, job_type
from riseml.base.records import dataclass
from riseml.base.states import JobDuty
from riseml.frameworks.base import BaseImage
from riseml.frameworks.registry import choose_framework
from riseml.frameworks.tensorboard import tensorboard_steps
from riseml.model import Environment, Image, Job, Plan, PlannedJob
from riseml.planning.image import Manifest, plan_image
from riseml.planning.template import fill_placeholders
from riseml.spec.config.conditions import list_defaults
from riseml.spec.config.types import Parameter, Resources, Shell, Spec, Train

_BUILD_RESOURCES = Resources(cpus=0.0, mem=0, gpus=0)


def make_plans(spec: Spec, points: Sequence[Environment], manifest: Manifest) -> tuple[Plan, ...]:
    """Return what will run for each point of the grid; the files are searched once for each environment.

    Raises:
        UsageError: as `make_plan`.
    """
    plans = plan_topologies(spec, points, manifest)
    return tuple(put_point(plan, spec.train.parameters, plan.parameters) for plan in plans)


def plan_topologies(spec: Spec, points: Sequence[Environment], manifest: Manifest) -> tuple[Plan, ...]:
    """Return what will run for some values of the parameters that change the jobs; `put_point` adds the others.

    Raises:
        UsageError: as `make_plan`.
    """
    trains = {topology.values: topology.train for topology in spec.topologies} or {(): spec.train}
    environments = {train: _choose_environments(train) for train in trains.values()}
    bases = dict.fromkeys(base for environment in environments.values() for base in environment.list_bases())
    images = {base: plan_image(base.reference, base.install, manifest, base.shell) for base in bases}
    plans = {key: _make_plan(spec.project, train, environments[train], images) for key, train in trains.items()}
    names = {name for key in trains for name, _ in key}
    return tuple(
        replace(plans[tuple(pair for pair in point if pair[0] in names)], parameters=point) for point in points
    )


def put_point(plan: Plan, parameters: Sequence[Parameter], point: Environment) -> Plan:
    """Return a plan with one point. Where a parameter is not there, the lines of its jobs have its default.

    Raises:
        UsageError: a default needs quoting in nested shell code, where no quoting is safe.
    """
    defaults = list_defaults(parameters, point)
    if not defaults:
        return replace(plan, parameters=point)
    jobs = (replace(job, run=tuple(fill_placeholders(line, defaults) for line in job.run)) for job in plan.jobs)
    return replace(plan, parameters=point, jobs=tuple(jobs))


def make_plan(spec: Spec, point: Environment, manifest: Manifest) -> Plan:
    """Return what will run for one point of the grid.

    Raises:
        UsageError: the file asks for something that this version cannot run.
    """
    (plan,) = make_plans(spec, (point,), manifest)
    return plan


@dataclass(frozen=True, slots=True)
class _Environments:
    """The environments of one experiment."""

    common: BaseImage  # image of jobs whose role has no environment; when every role has one, that of the first role
    roles: Mapping[str, BaseImage]  # by the type of the jobs

    def list_bases(self) -> tuple[BaseImage, ...]:
        return self.common, *self.roles.values()


def _choose_environments(train: Train) -> _Environments:
    """Return the base images and the install steps."""
    framework = choose_framework(train)
    own = {job_type(role.name): role.image for role in framework.roles(train)}
    bases = {name: base for name, base in own.items() if base is not None}
    if bases and None not in own.values():
        return _Environments(next(iter(bases.values())), bases)
    base = BaseImage(train.image) if train.image else framework.image(train)
    if base is None:
        raise UsageError("train.image is missing", "name an image, or use a framework that has a default image")
    steps = (*base.install, *train.install, *tensorboard_steps(train))
    common = BaseImage(base.reference, steps, train.shell) if steps else BaseImage(base.reference)
    return _Environments(common, bases)


def _make_plan(project: str, train: Train, environments: _Environments, images: Mapping[BaseImage, Image]) -> Plan:
    """Return what will run, without the parameters."""
    framework = choose_framework(train)
    jobs = tuple(
        PlannedJob(
            role.name,
            role.part,
            role.resources,
            train.limits,
            role.run or train.run,
            grace=role.grace,
            shell=role.shell or train.shell,
        )
        for role in framework.roles(train)
    )
    common = environments.common
    return Plan(
        project=project,
        image=images[common],
        jobs=jobs,
        framework=framework.name,
        options=framework.options(train),
        policy=train.policy,
        secret_variables=tuple((variable.name, variable.secret) for variable in train.env if variable.secret),
        role_outputs=tuple((role.name, role.outputs) for role in train.roles if role.outputs),
        role_images=tuple((role, images[base]) for role, base in environments.roles.items() if base != common),
    )


def first_jobs(plan: Plan) -> tuple[Job, ...]:
    """Return the job records of a new experiment: the build job, then every job of the plan."""
    build = Job(BUILD, JobDuty.PREPARES, _BUILD_RESOURCES)
    return (build, *(Job(job.name, job.part, job.resources, shell=_find_shell(job)) for job in plan.jobs))


def _find_shell(job: PlannedJob) -> Shell | None:
    """Return the shell of a job; None where the job itself finds out which it has."""
    return None if job.shell is Shell.AUTO else job.shell


def make_next_attempt(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return new records of the same jobs for another attempt; the build job keeps its record."""
    return tuple(
        job
        if job.part is JobDuty.PREPARES
        else Job(job.name, job.part, job.resources, attempt=job.attempt + 1, shell=job.shell)
        for job in jobs
    )
