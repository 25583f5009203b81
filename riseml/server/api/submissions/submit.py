"""A submission: parse it, plan it, check it against the pool, make the records to store."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

from riseml import wire
from riseml.base.annotations import NO_ANNOTATION, Annotation, read_text
from riseml.base.consent import make_process_refusal
from riseml.base.errors import Refused, Unreachable, UsageError
from riseml.base.masks import LEAST_MASKED
from riseml.base.names import JobName, name_repository
from riseml.base.records import dataclass
from riseml.base.settings import PROCESS
from riseml.control.permissions import choose_team_project
from riseml.control.placement.refusal import describe_refusal, suggest_remedy
from riseml.model import Caller, Environment, Origin, Plan, Point, Resolved, SearchPlan
from riseml.planning.companions import JUPYTER_VARIABLES, TOKEN_VARIABLE, plan_notebook
from riseml.planning.generations import make_lineage
from riseml.planning.grid import grid_points, makes_set
from riseml.planning.image import Manifest
from riseml.planning.plan import first_jobs, make_plan, make_plans
from riseml.planning.repetition import add_seed, find_first_seed
from riseml.planning.template import check_values
from riseml.planning.trial_plan import make_templates, plan_trial
from riseml.searches.propose import choose_first_point
from riseml.server.api.submissions.predecessors import PredecessorFinder
from riseml.server.api.submissions.team_checks import check_for_team, find_holder, find_project_spaces
from riseml.server.clock import now
from riseml.server.hosts.environment_review import review_environment
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.observe import make_observation
from riseml.server.services import Services
from riseml.spec.config.loader import Overrides, load_config
from riseml.spec.config.resolved import resolve_config
from riseml.spec.config.types import SEED, Parameter, Resources, Spec, Train
from riseml.spec.scalars.texts import is_valid_text
from riseml.store.insertion import NewExperiments, NewSearch
from riseml.store.secret_store import SecretOwner

_IDLE_TIMEOUT = 3600.0  # seconds without anything to do after which a notebook ends
_TOKEN_BYTES = 24
_DIGEST = re.compile(r"([^@\s]+@)?sha256:[0-9a-f]{64}")
_MOST_SEEDS = 1_000_000  # short enough to be written into a riseml.yml


@dataclass(frozen=True, slots=True)
class Planned:
    """A parsed riseml.yml with its plans."""

    spec: Spec
    plans: tuple[Plan, ...]  # one for each point of the grid; of a search, the plan of its first trial
    resolved: Resolved = ()  # images that the registry has resolved; the loop resolves the other tags
    search: NewSearch | None = None  # None: every experiment is made now

    def list_plans(self) -> tuple[Plan, ...]:
        """Return all plans, also those of later trials."""
        return (*self.plans, *(() if self.search is None else (plan for _, plan in self.search.templates)))


def plan_submission(submission: wire.Submission, caller: Caller, services: Services) -> Planned:
    """Parse and plan a submission; store nothing.

    Raises:
        Refused: a team's server does not run it for this caller.
        UsageError: a value holds a NUL character, which no process and no store accepts; or a line of `run` has a
            parameter where its value would need quoting and no quoting is safe; or no point meets the constraints.
        SpecError: the file has problems.
        NotFound: the project's files were not synced.
    """
    check_text(submission)
    spec = load_config(submission["config"], submission["file"], read_overrides(submission))
    snapshot = submission.get("snapshot")
    manifest = Manifest()
    if snapshot:
        spaces = find_project_spaces(caller, services.hosts)
        manifest = services.stores.snapshots.load_manifest(snapshot, spaces)
    planned = _plan(submission, spec, replace(manifest, holder=find_holder(spec.project, caller, services.hosts)))
    planned = _change_plans(planned, PredecessorFinder(services).add_to_plans(caller, submission, planned.plans))
    if caller.project is not None:  # its key is bound: the jobs get the secrets of the project alone
        planned = _change_plans(planned, lambda plan: replace(plan, bound=True))
    check_for_team(planned.list_plans(), planned.resolved, caller, services)
    return planned


def _change_plans(planned: Planned, change: Callable[[Plan], Plan]) -> Planned:
    """Return a submission with all its plans changed, also those of later trials."""
    search = planned.search
    if search is not None:
        search = replace(search, templates=tuple((point, change(plan)) for point, plan in search.templates))
    return replace(planned, plans=tuple(map(change, planned.plans)), search=search)


def _plan(submission: wire.Submission, spec: Spec, manifest: Manifest) -> Planned:
    search = _plan_search(spec.train)
    points = grid_points(spec.train) if search is None else (_choose_first_run(search),)
    notebook = submission.get("notebook")
    origin = _find_origin(submission)
    if notebook is None:
        _check_lines(spec.train)
    if notebook is None and search is not None:
        templates = tuple((values, replace(plan, origin=origin)) for values, plan in make_templates(spec, manifest))
        pinned = _find_pinned_images(submission, [plan for _, plan in templates])
        new = NewSearch(search, templates, spec.train.env)
        first = plan_trial(templates, points[0], search.parameters, make_lineage(search, 1))
        return Planned(spec, (first,), pinned, new)
    if notebook is None:
        plans = tuple(replace(plan, origin=origin) for plan in make_plans(spec, points, manifest))
        return Planned(spec, plans, _find_pinned_images(submission, plans))
    idle = notebook.get("idle_timeout", _IDLE_TIMEOUT)
    plan = plan_notebook(make_plan(spec, points[0], manifest), spec.train.resources, spec.train.limits, idle)
    return Planned(spec, (plan,))


def _check_lines(train: Train) -> None:
    """Refuse lines of `run` with which no job can start, before a host makes the environment."""
    lines = [line for role in train.roles for line in role.run] or train.run
    check_values(lines, {declared.name: _list_texts(declared) for declared in train.parameters})


def _list_texts(parameter: Parameter) -> tuple[str, ...]:
    return parameter.values if parameter.default is None else (*parameter.values, parameter.default)


def _plan_search(train: Train) -> SearchPlan | None:
    """Return the search of a file, with a seed: with it, any server makes the same trials from the store."""
    search = train.search
    if search is None:
        return None
    seed = secrets.randbelow(_MOST_SEEDS) if search.seed is None else search.seed
    chosen = (parameter for parameter in train.parameters if not train.seeds or parameter.name != SEED)
    return SearchPlan(replace(search, seed=seed), tuple(chosen), train.seeds)


def _choose_first_run(search: SearchPlan) -> Point:
    return add_seed(_choose_first_point(search), find_first_seed(search))


def _choose_first_point(search: SearchPlan) -> Point:
    try:
        return choose_first_point(search)
    except LookupError as error:
        raise UsageError(
            "search.constraints allow none of thousands of points that were chosen at random",
            "loosen them, or give the parameters other values",
        ) from error


def _find_origin(submission: wire.Submission) -> Origin:
    git = submission.get("git")
    rerun_of = submission.get("rerun_of", "")
    if git is None:
        return Origin(submission["file"], rerun_of=rerun_of)
    return Origin(submission["file"], git["revision"], git["clean"], rerun_of, tuple(git.get("missing", ())))


def _find_pinned_images(submission: wire.Submission, plans: Sequence[Plan]) -> Resolved:
    """Return the resolved base images of the run that is repeated; the loop resolves the others.

    Raises:
        Refused: the file, or this version of riseml, names another image than that run had.
    """
    pinned = {pin["image"]: pin["digest"] for pin in submission.get("pinned", [])}
    unpinned = sorted({image.base for plan in plans for image in plan.images} - set(pinned))
    if pinned and unpinned:
        raise Refused(
            f"the run had the image {', '.join(pinned)}, and here it would have {unpinned[0]}",
            f"`--set train.image={next(iter(pinned))}` names it",
        )
    for image, digest in pinned.items():
        if not _DIGEST.fullmatch(digest):
            raise UsageError(f"{digest[:80]!r} names no image by its digest", "it looks like python@sha256:...")
        if "@" in digest and name_repository(digest) != name_repository(image):
            raise UsageError(
                f"{digest[:80]!r} is not an image of {name_repository(image)[:80]!r}",
                "the digest of an image is one of its own repository",
            )
    return tuple(pinned.items())


def check_text(value: object) -> None:
    """Refuse NUL characters and halves of surrogate pairs anywhere in a request: no process and no store accepts them.

    Raises:
        UsageError: there is one.
    """
    match value:
        case str():
            if "\0" in value:
                raise UsageError("the request holds a NUL character", "leave it out: no process can be given one")
            if not is_valid_text(value):
                raise UsageError("the request holds half of a character (of a surrogate pair)", "send it as UTF-8")
        case dict():
            check_text(list(value))
            check_text(list(value.values()))
        case list() | tuple():
            for part in value:
                check_text(part)


def list_passed(train: Train) -> tuple[str, ...]:
    """Return the names of the variables whose values come from the user, and not from riseml.yml."""
    return tuple(variable.name for variable in train.env if variable.is_passed)


def _check_environments(plans: Sequence[Plan], hosts: HostSet) -> None:
    for image in dict.fromkeys(image for plan in plans for image in plan.images):
        refusal = review_environment(hosts, image).refusal
        if refusal:
            raise Refused(refusal, "leave the step out, or use Docker, where steps are root in their container")


def check_room(plans: Sequence[Plan], services: Services, passed: Sequence[str] = ()) -> None:
    """Refuse plans that would not fit into the empty pool, and environments that no host can make.

    Args:
        plans: one for each point of the grid; counts and resources of jobs may differ.
        services: of the server.
        passed: names of the variables that the user passes on.

    Raises:
        Unreachable: no host answers. A host that is only slow counts as answering.
        Refused: the jobs never fit, with the reason for each host; or an install step is refused.
    """
    hosts = services.hosts
    services.data.fetcher.check_plans(plans, passed)
    _check_environments(plans, hosts)
    if not hosts.is_any_answering():
        trouble = next(iter(hosts.find_troubles().values()), None)
        raise Unreachable(
            trouble.message if trouble else "no host of the pool has answered yet",
            trouble.hint if trouble else "try again in a few seconds",
        )
    if len(hosts.last_seen()) < len(hosts.names):
        return  # a host that has never answered may have the room
    observation = make_observation(hosts, services.stores.drained, hosts.last_seen(), now())
    gangs: dict[tuple[tuple[JobName, Resources], ...], Plan] = {}
    for plan in plans:
        gangs.setdefault(tuple((job.name, job.resources) for job in plan.jobs), plan)
    for gang, plan in gangs.items():
        reasons = describe_refusal(dict(gang), observation)
        if reasons:
            point = ", ".join(f"{name}={value}" for name, value in plan.parameters) if len(gangs) > 1 else ""
            raise Refused(
                f"this can never run{point and f' with {point}'}: {'; '.join(reasons)}",
                suggest_remedy(dict(gang), observation),
            )


def check_choice(executor: str | None, hosts: HostSet) -> None:
    """Check that jobs would run as the user has chosen: in containers, or as processes.

    Args:
        executor: the executor that the request names; None: it names none.
        hosts: of the server.

    Raises:
        Refused: the user has not chosen processes, or the submission names the executor that this server does not use.
    """
    missing = hosts.find_missing_engine()
    if missing and executor is None:
        raise make_process_refusal(missing)
    used = hosts.executor_name
    if executor not in (None, used):
        change = f"`riseml train --executor {executor}` on the server's machine changes that while nothing runs"
        raise Refused(
            f"this riseml server uses the {used} executor, and the submission asks for {executor}",
            change if hosts.rules is None else f"leave out `--executor {executor}`: the admin chooses what runs jobs",
        )
    if executor is None and used == PROCESS and not hosts.has_chosen_processes():
        raise make_process_refusal("")


def make_new_experiments(submission: wire.Submission, planned: Planned, caller: Caller) -> NewExperiments:
    """Return the records to store for a submission.

    Raises:
        UsageError: the submission lacks the value of a variable that `env` passes through, or what it says about the
            run is not allowed.
        Refused: the key of the caller is bound to another project.
    """
    train = planned.spec.train
    environment = _make_environment(submission, planned.spec)
    notebook = "notebook" in submission
    if notebook:
        variables = tuple(pair for pair in environment if not pair[0].startswith(JUPYTER_VARIABLES))
        environment = (*variables, (TOKEN_VARIABLE, secrets.token_hex(_TOKEN_BYTES)))
    return NewExperiments(
        owner=caller.owner,
        project=planned.spec.project,
        team_project=choose_team_project(caller, planned.spec.project),
        config=resolve_config(submission["config"], read_overrides(submission)),
        snapshot=submission.get("snapshot") or "",
        plans=tuple((plan, first_jobs(plan)) for plan in planned.plans),
        environment=environment,
        notes=planned.spec.notes,
        key=submission.get("key"),
        search=None if notebook else planned.search,
        concurrency=train.concurrency if makes_set(train) and not notebook else None,
        resolved=planned.resolved,
        annotation=NO_ANNOTATION if notebook else _read_annotation(submission, train),
    )


def check_secrets(new: NewExperiments, owners: Sequence[SecretOwner], services: Services) -> None:
    """Check that the secrets which a run names are set, and that nothing which is stored shows one.

    Args:
        new: the run.
        owners: whose secrets it may use.
        services: of the server.

    Raises:
        NotFound: one is not set.
        Refused: the hosts have no place for secrets as files.
        UsageError: the file or a text of the run has the value of a secret.
    """
    plan = new.plans[0][0]
    if not plan.secret_names:
        return
    if plan.policy.secrets and not all(
        executor.capabilities.secret_files for executor in services.hosts.pool.executors.values()
    ):
        raise Refused(
            "train.secrets: the nodes of this cluster have no private place in memory for files",
            "name the secret in `env`: `env: {HF_TOKEN: {secret: hf}}`",
        )
    values = services.stores.secrets.peek_secrets(owners, plan.secret_names)
    texts = (new.config, new.annotation.name, new.annotation.note, *new.annotation.tags)
    for name, value in values.items():
        content = value.strip()
        if len(content) >= LEAST_MASKED and any(content in text for text in texts):
            raise UsageError(
                f"riseml.yml, a parameter or a text of the run has the value of the secret {name} in it, and is stored",
                f"name the secret instead: `env: {{NAME: {{secret: {name}}}}}`",
            )


def _read_annotation(submission: wire.Submission, train: Train) -> Annotation:
    """Return what the user says about a run: with the submission, or else in its file.

    Raises:
        UsageError: a name, a tag or the note of the submission is not allowed.
    """
    request = submission.get("annotation", {})
    name = request.get("name")
    note = request.get("note")
    tags = request.get("tags")
    return Annotation(
        name=train.name if name is None else name and read_text("name", name),
        tags=train.tags if tags is None else tuple(dict.fromkeys(read_text("tag", tag) for tag in tags)),
        note=train.notes if note is None else read_text("note", note),
    )


def _make_environment(submission: wire.Submission, spec: Spec) -> Environment:
    sent = submission.get("environment") or {}
    variables: list[tuple[str, str]] = []
    for variable in spec.train.env:
        if variable.secret:
            continue  # the plan has its name
        value = sent.get(variable.name) if variable.value is None else variable.value
        if value is None:
            raise UsageError(
                f"train.env passes {variable.name} through, but it is not set", f"export {variable.name}=..."
            )
        variables.append((variable.name, value))
    return tuple(variables)


def read_overrides(submission: wire.Submission) -> Overrides:
    """Return the values of the command line that a submission has."""
    return Overrides(_pairs(submission.get("parameters")), _pairs(submission.get("settings")))


def _pairs(rows: list[tuple[str, str]] | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in rows or ())
