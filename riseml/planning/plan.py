"""Make a plan from a spec and one point of its grid, and the job records of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from riseml.errors import UsageError
from riseml.frameworks.base import BaseImage
from riseml.frameworks.registry import choose_framework
from riseml.frameworks.tensorboard import tensorboard_steps
from riseml.model import Environment, Image, Job, Plan, PlannedJob
from riseml.names import BUILD
from riseml.planning.image import Manifest, plan_image
from riseml.spec.config.types import Resources, Spec, Train
from riseml.states import Part

_BUILD_RESOURCES = Resources(cpus=0.0, mem=0, gpus=0)


def make_plans(spec: Spec, points: Sequence[Environment], manifest: Manifest) -> tuple[Plan, ...]:
    """Return what will run for each point of the grid; the files are searched once for each environment.

    Raises:
        UsageError: as `make_plan`.
    """
    trains = {topology.values: topology.train for topology in spec.topologies} or {(): spec.train}
    environments = {train: _choose_environment(train) for train in trains.values()}
    images = {environment: plan_image(*environment, manifest) for environment in environments.values()}
    plans = {key: _make_plan(spec.project, train, images[environments[train]]) for key, train in trains.items()}
    names = {name for key in trains for name, _ in key}
    return tuple(
        replace(plans[tuple(pair for pair in point if pair[0] in names)], parameters=point) for point in points
    )


def make_plan(spec: Spec, point: Environment, manifest: Manifest) -> Plan:
    """Return what will run for one point of the grid.

    Raises:
        UsageError: the file asks for something that this version cannot run.
    """
    (plan,) = make_plans(spec, (point,), manifest)
    return plan


def _choose_environment(train: Train) -> tuple[str, tuple[str, ...]]:
    """Return the base image and the install steps."""
    base = BaseImage(train.image) if train.image else choose_framework(train).image(train)
    if base is None:
        raise UsageError("train.image is missing", "name an image, or use a framework that has a default image")
    return base.reference, (*base.install, *train.install, *tensorboard_steps(train))


def _make_plan(project: str, train: Train, image: Image) -> Plan:
    """Return what will run, without the parameters."""
    framework = choose_framework(train)
    jobs = tuple(
        PlannedJob(role.name, role.part, role.resources, train.limits, role.run or train.run, grace=role.grace)
        for role in framework.roles(train)
    )
    return Plan(
        project=project,
        image=image,
        jobs=jobs,
        framework=framework.name,
        options=framework.options(train),
        shm_size=train.shm_size,
        stop_grace=train.stop_grace,
        max_duration=train.max_duration,
        idle_timeout=train.idle_timeout,
        retry=train.retry,
        priority=train.priority,
    )


def first_jobs(plan: Plan) -> tuple[Job, ...]:
    """Return the job records of a new experiment: the build job, then every job of the plan."""
    build = Job(BUILD, Part.PREPARES, _BUILD_RESOURCES)
    return (build, *(Job(job.name, job.part, job.resources) for job in plan.jobs))


def make_next_attempt(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return new records of the same jobs for another attempt; the build job keeps its record."""
    return tuple(
        job if job.part is Part.PREPARES else replace(Job(job.name, job.part, job.resources), attempt=job.attempt + 1)
        for job in jobs
    )
