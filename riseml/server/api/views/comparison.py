"""The differences between experiments: parameters, resolved riseml.yml, environment and project files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from riseml import wire
from riseml.base.errors import NotFound, UsageError
from riseml.base.names import job_type, parse_id
from riseml.control.visible_names import name_seen
from riseml.model import Caller, Experiment, Image, Plan, PlannedJob, resolve_base
from riseml.server.api.views.metric_views import show_summary
from riseml.server.api.views.named_experiments import find_details
from riseml.server.api.views.record_views import count_run_seconds, show_time
from riseml.server.services import Stores
from riseml.spec.config.loader import Overrides, check_config
from riseml.spec.config.types import EnvVariable
from riseml.store.codec import to_json
from riseml.store.experiments import ExperimentDetail
from riseml.store.metrics.metric_summary import MetricSummary
from riseml.store.projects.snapshots import SnapshotStore

_MOST_FILES = 10_000  # files in an answer
_MOST_NAMED = 3  # members of a set, in a hint
_DIGITS = 12  # digits of a file's digest
_OTHERS = frozenset({"project", "image", "parameters", "jobs", "companion"})
"""Fields of a plan that are not keys of riseml.yml, or are compared separately."""

Texts = Mapping[str, str]
"""The compared values of one experiment, by name."""


def compare_experiments(names: Sequence[str], caller: Caller, stores: Stores, moment: datetime) -> wire.ComparisonView:
    """Return the differences between the experiments with these IDs.

    Args:
        names: IDs of experiments.
        caller: the user of the request.
        stores: of the server.
        moment: now.

    Raises:
        NotFound: there is no such experiment.
        UsageError: an ID names a set or a job.
    """
    details = [_find_experiment(name, caller, stores) for name in names]
    experiments = [detail.experiment for detail in details]
    files = [_load_files(experiment, stores.snapshots) for experiment in experiments]
    summaries = stores.metrics.read_summaries([experiment.id for experiment in experiments])
    manifests = [manifest for manifest in files if manifest is not None]
    changed = _find_differences(manifests) if len(manifests) == len(files) else ()
    return {
        "experiments": [_show_compared(experiment, caller, moment) for experiment in experiments],
        "parameters": [*_find_differences([dict(experiment.plan.parameters) for experiment in experiments])],
        "config": [
            *_find_differences([describe_config(experiment.plan) for experiment in experiments]),
            *_find_environment_differences(details),
        ],
        "environment": [*_find_differences([_describe_environment(experiment) for experiment in experiments])],
        "code": [
            {"path": difference["name"], "versions": difference["values"]}
            for difference in islice(changed, _MOST_FILES)
        ],
        "metrics": [*_find_metric_differences([summaries.get(experiment.id, {}) for experiment in experiments])],
        "code_unknown": [
            name_seen(caller, experiment)
            for experiment, manifest in zip(experiments, files, strict=True)
            if manifest is None
        ],
    }


def _find_experiment(name: str, caller: Caller, stores: Stores) -> ExperimentDetail:
    canonical_id = parse_id(name)
    details = find_details(canonical_id, caller, stores)
    if canonical_id.job is not None:
        raise UsageError(f"{name} is a job", f"name its experiment: {canonical_id.experiment}")
    if len(details) > 1:
        named = [name_seen(caller, detail.experiment) for detail in details[:_MOST_NAMED]]
        more = " ..." if len(details) > _MOST_NAMED else ""
        raise UsageError(f"{name} is a set", f"name its experiments: {' '.join(named)}{more}")
    return details[0]


def _show_compared(experiment: Experiment, caller: Caller, moment: datetime) -> wire.ComparedExperiment:
    seconds = count_run_seconds(experiment, moment)
    return {
        "id": name_seen(caller, experiment),
        "project": experiment.project,
        "state": experiment.state.value,
        "started_at": show_time(experiment.started_at),
        "ended_at": show_time(experiment.ended_at),
        "seconds": None if seconds is None else round(seconds, 3),
    }


def _find_differences(columns: Sequence[Texts]) -> Iterable[wire.Difference]:
    """Yield the values that differ, in the order in which their names first appear."""
    for name in dict.fromkeys(name for column in columns for name in column):
        values = [column.get(name) for column in columns]
        if len(set(values)) > 1:
            yield {"name": name, "values": values}


def _find_metric_differences(columns: Sequence[Mapping[str, MetricSummary]]) -> Iterable[wire.MetricDifference]:
    """Yield the metrics whose last or best values are not the same in all experiments."""
    for name in dict.fromkeys(name for column in columns for name in column):
        metrics = [column.get(name) for column in columns]
        values = {None if metric is None else (repr(metric.last), metric.minimum, metric.maximum) for metric in metrics}
        if len(values) > 1:
            yield {"name": name, "metrics": [None if metric is None else show_summary(metric) for metric in metrics]}


def describe_config(plan: Plan) -> dict[str, str]:
    """Return the keys of a riseml.yml that the plan was made from, with their values as text.

    Example: `{"framework": "tensorflow", "jobs": "master, worker.1", "worker.resources.cpus": "2", ...}`.
    """
    config = {"project": plan.project, "jobs": ", ".join(job.name for job in plan.jobs)}
    kinds = {job_type(job.name): job for job in reversed(plan.jobs)}
    for kind, job in reversed(kinds.items()):
        section = f"{kind}." if len(kinds) > 1 else ""
        config |= {f"{section}{name}": text for name, text in _describe_job(job).items()}
    for name, value in to_json(plan).items():
        if name not in _OTHERS:
            config |= _flatten("" if name == "policy" else name, value)  # keys of the policy are keys of `train`
    return config


def _describe_job(job: PlannedJob) -> dict[str, str]:
    fields = {"run": "\n".join(job.run), "resources": to_json(job.resources), "limits": to_json(job.limits)}
    return _flatten("", fields)


def _flatten(name: str, value: Any) -> dict[str, str]:
    """Return nested values by their path; empty values have no entry."""
    if isinstance(value, dict):
        return {
            path: text
            for key, nested in value.items()
            for path, text in _flatten(f"{name}.{key}" if name else key, nested).items()
        }
    if value is None or value in ("", (), []):
        return {}
    if isinstance(value, tuple | list):
        pairs = all(isinstance(element, tuple) and len(element) == 2 for element in value)
        return {name: ", ".join("=".join(map(str, element)) if pairs else str(element) for element in value)}
    return {name: f"{value:g}" if isinstance(value, float) else str(value)}


def _find_environment_differences(details: Sequence[ExperimentDetail]) -> Iterable[wire.Difference]:
    """Yield which variables of `env` differ. Their values may be secrets, and are never shown."""
    for difference in _find_differences([_read_environment(detail) for detail in details]):
        texts = [None if value is None else _hide(value) for value in difference["values"]]
        if len(set(texts)) == 1:
            texts = ["(set, with different values)" for _ in texts]
        yield {"name": difference["name"], "values": texts}


def _hide(value: str) -> str:
    if value.startswith("secret "):
        return f"({value})"
    return "(set)" if value else "(passed on)"


def _read_environment(detail: ExperimentDetail) -> dict[str, str]:
    """Return the variables of `env` in a riseml.yml; one that passes on the user's own value has an empty text."""
    checked = check_config(detail.config, overrides=Overrides(detail.experiment.plan.parameters))
    variables = () if checked.spec is None else checked.spec.train.env
    return {f"env.{variable.name}": _describe_variable(variable) for variable in variables}


def _describe_variable(variable: EnvVariable) -> str:
    """Return the value of a variable; the name of its secret; empty: the user's own value is passed on."""
    if variable.secret:
        return f"secret {variable.secret}"
    return "" if variable.value is None else f"={variable.value}"


def _describe_environment(experiment: Experiment) -> dict[str, str]:
    """Return the fields of each environment by name; fields of a role's environment begin with the name of the role."""
    plan = experiment.plan
    images = [("", plan.image), *((f"{role}: ", image) for role, image in plan.role_images)]
    return {
        f"{role}{name}": text
        for role, image in images
        for name, text in _describe_image(resolve_base(image, experiment.resolved)).items()
        if text
    }


def _describe_image(image: Image) -> dict[str, str]:
    return {
        "image": image.base,
        "image digest": image.resolved,
        "install": "\n".join(image.install),
        "files that install reads": ", ".join(image.files),
    }


def _load_files(experiment: Experiment, snapshots: SnapshotStore) -> dict[str, str] | None:
    """Return the project's files with their contents' digests; None: the server does not have them any more."""
    if not experiment.snapshot:
        return {}
    try:
        files = snapshots.load_manifest(experiment.snapshot).files
    except NotFound:
        return None
    return {path: _name_version(mark) for path, mark in sorted(files.items())}


def _name_version(mark: str) -> str:
    """Return the first digits of a content's digest; an executable file has an `x` before them."""
    if mark.startswith("link:"):
        return mark[: _DIGITS * 4]
    return f"{mark[:1].strip('-')}{mark[1 : 1 + _DIGITS]}"
