"""The tools about a project, before anything runs: propose a riseml.yml, check it, plan, submit."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from riseml import wire
from riseml.agents.answers import describe_experiment, shorten_answer
from riseml.agents.budget import Need, find_excess, measure_need
from riseml.agents.session import AgentSession, Order, ShownPlan, describe_change, join_names, list_texts
from riseml.base.amounts import count_noun
from riseml.base.errors import Refused, UsageError

if TYPE_CHECKING:
    from riseml.project_reading.config_text import ProjectConfig
    from riseml.python_api.program import Program
    from riseml.submission.config_source import ConfigSource

_HOUR = 3600.0  # seconds

ProjectPath = Annotated[str, Field(description="a riseml.yml or its folder, below the folder of this session")]
Parameters = Annotated[
    dict[str, Any] | None,
    Field(description='values of train.parameters: {"lr": 0.1}; a list is a grid: {"lr": [0.1, 0.01]}'),
]
Settings = Annotated[
    dict[str, Any] | None, Field(description='keys of riseml.yml in place of the file\'s: {"train.resources.gpus": 2}')
]


class ProjectTools:
    """The tools about projects of one session."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session

    def init(
        self,
        project: Annotated[str, Field(description="folder below the folder of this session")] = ".",
        program: Annotated[str | None, Field(description="script or notebook to run; null: the best one")] = None,
        write: Annotated[bool, Field(description="write riseml.yml; false: only propose its text")] = False,  # noqa: FBT002  # the SDK calls it by names
    ) -> wire.AgentConfig:
        """Propose a riseml.yml that fits the files of a folder, and write it if asked. It runs nothing, and never
        overwrites a file.
        """
        from riseml.cli.commands.new_config import check_script
        from riseml.cli.config_source import check_absent, write_new_config
        from riseml.files.project.folder import CONFIG
        from riseml.project_reading.config_text import make_project_config
        from riseml.project_reading.project_files import read_project_files
        from riseml.spec.config.loader import load_config
        from riseml.spec.config.templates import make_starter_config

        folder = self._session.find_path(project)
        if not folder.is_dir():
            raise UsageError(f"{project} is no folder", "give the folder of a project")
        check_absent(folder, CONFIG)
        texts = read_project_files(folder)
        script = "" if program is None else check_script(folder, texts, program)
        fitting = make_project_config(texts, folder.name, script)
        if script and (fitting is None or fitting.proposal.program != script):
            raise UsageError(f"{script} is not Python that riseml can read", "name a script that Python itself takes")
        text = make_starter_config(folder.name, None) if fitting is None else fitting.text
        if write:
            write_new_config(folder, CONFIG, text)
        answer: wire.AgentConfig = {
            "summary": _describe_proposal(fitting, written=write),
            "cut": [],
            "file": str(Path(project) / CONFIG),
            "project": load_config(text).project,
            "text": text,
            "written": write,
            "findings": [] if fitting is None else [_describe_finding(row) for row in fitting.proposal.findings],
            "remarks": [] if fitting is None else list(fitting.proposal.remarks),
            "programs": [] if fitting is None else list(fitting.proposal.choices),
        }
        return shorten_answer(answer)

    def validate(
        self, project: ProjectPath = ".", parameters: Parameters = None, settings: Settings = None
    ) -> wire.AgentCheck:
        """Check riseml.yml and list every problem with its line. No server is needed."""
        from riseml.cli.config_source import describe_spec, list_topologies
        from riseml.frameworks.registry import choose_framework
        from riseml.spec.config.loader import Overrides
        from riseml.spec.yaml.problems import count_problems
        from riseml.submission.config_source import check_config_source

        source = self._session.find_source(project)
        pairs = list_texts(parameters, "parameters"), list_texts(settings, "settings")
        spec, problems = check_config_source(source, Overrides(*map(tuple, pairs)))
        if spec is None:
            summary = f"{source.name} has {count_problems(problems)}."
        else:
            choose_framework(spec.train)
            summary = "\n".join([f"{source.name} is valid: {describe_spec(spec)}.", *list_topologies(spec)])
        answer: wire.AgentCheck = {
            "summary": summary,
            "cut": [],
            "file": source.name,
            "valid": spec is not None,
            "problems": [problem.to_fields() for problem in problems],
        }
        return shorten_answer(answer)

    def plan(
        self,
        project: ProjectPath = ".",
        parameters: Parameters = None,
        settings: Settings = None,
        message: Annotated[str | None, Field(description="a note on the run: what it is for")] = None,
        pull: Annotated[bool, Field(description="ask the registry for the newest image")] = False,  # noqa: FBT002  # as above
    ) -> wire.AgentPlan:
        """Say what a submission would start, where, and how many GPU-hours it may use at most. Nothing starts, and no
        file is sent. The token of the answer is what `submit` takes.
        """
        order = Order(project, list_texts(parameters, "parameters"), list_texts(settings, "settings"), message, pull)
        sentences: list[str] = []
        program = self._session.make_program(sentences)
        source = self._session.find_source(project)
        submission = _prepare(program, source, order)
        from riseml.submission.dry_run import make_dry_run

        dry_run = make_dry_run(program, source, submission)
        hours = _read_max_hours(source, order)
        need = measure_need(dry_run.plan, hours)
        with self._session.connect() as client:
            budget = self._session.read_budget(client)
        token = order.make_token(source, dry_run.snapshot, dry_run.server)
        with self._session.lock:
            self._session.plans[token] = ShownPlan(order, source.text, dry_run.snapshot, dry_run.server, need)
        excess = find_excess(need, budget)
        refusal = None if excess is None else ": ".join(excess)
        answer: wire.AgentPlan = {
            "summary": _describe_plan(dry_run.plan, need, refusal),
            "cut": [],
            "token": token,
            "plan": _leave_out_environment(dry_run.plan),
            "experiments": need.experiments,
            "gpus": need.gpus,
            "max_hours": hours,
            "gpu_hours": None if need.gpu_hours is None else round(need.gpu_hours, 3),
            "refusal": refusal,
            "budget": budget,
            "messages": sentences,
        }
        return shorten_answer(answer)

    def submit(
        self, token: Annotated[str, Field(description="of a plan that this session has shown")]
    ) -> wire.AgentRun:
        """Start what a plan has shown, if the project is still the same. A plan starts one experiment or one set,
        however often it is submitted.
        """
        sentences: list[str] = []
        with self._session.lock:
            plan = self._session.find_plan(token)
            if plan.started is not None:
                return self._show_run(plan.started, f"This plan has started {plan.started} already.", sentences)
            with self._session.connect() as client:
                excess = find_excess(plan.need, self._session.read_budget(client))
            if excess is not None:
                raise Refused(f"the budget of this session does not allow it: {excess[0]}", excess[1])
            identity = self._start(token, plan, sentences)
        return self._show_run(identity, "Submitted.", sentences)

    def _start(self, token: str, plan: ShownPlan, sentences: list[str]) -> str:
        """Submit a plan, and return the ID of what was started.

        Raises:
            Refused: the project is not what the agent was shown.
        """
        from riseml.submission.project_sync import ProjectSync
        from riseml.submission.submitting import confirm_environment, send_with_revision, submit_once

        program = self._session.make_program(sentences)
        source = self._session.find_source(plan.order.project)
        submission = _prepare(program, source, plan.order)
        sync = ProjectSync(program, source.project.folder)
        snapshot = sync.name_files(sync.list_files()).digest
        with self._session.connect() as client:
            server = str(client.address)
        _check_unchanged(plan, source, (token, snapshot, server))
        confirm_environment(program, source, submission, self._session.permissions.allow_env)
        with closing(send_with_revision(program, source, submission, quiet=True)) as client:
            # a program may have written to the project since
            _check_unchanged(plan, source, (token, submission["snapshot"], str(client.address)))
            identity = submit_once(client, submission)["id"]
            self._session.note_start(token, identity)
        return identity

    def _show_run(self, identity: str, sentence: str, sentences: list[str]) -> wire.AgentRun:
        with self._session.connect() as client:
            view = client.get_experiment(identity)
            budget = self._session.read_budget(client)
        answer: wire.AgentRun = {
            "summary": f"{sentence} {describe_experiment(view)}",
            "cut": [],
            "experiment": view,
            "budget": budget,
            "messages": sentences,
        }
        return shorten_answer(answer)


def _prepare(program: Program, source: ConfigSource, order: Order) -> wire.Submission:
    from riseml.base.annotations import read_text
    from riseml.submission.submitting import prepare_submission

    submission = prepare_submission(program, source, order.parameters, order.settings, pull=order.pull)
    if order.message is not None:
        if not order.message.strip():
            raise UsageError("message is empty", "write what the run is for, or leave message out")
        submission["annotation"] = {"note": read_text("note", order.message)}
    return submission


def _check_unchanged(plan: ShownPlan, source: ConfigSource, now: tuple[str, str, str]) -> None:
    """Refuse what differs from the plan. `now`: the token, the digest of the files, and the server.

    Raises:
        Refused: it differs.
    """
    token, snapshot, server = now
    if plan.order.make_token(source, snapshot, server) != token:
        raise Refused(
            f"this is not what the plan has shown: {describe_change(plan, source, snapshot)}; nothing was started",
            "call `plan` again, and submit its token",
        )


def _read_max_hours(source: ConfigSource, order: Order) -> float | None:
    """Return how long an experiment may run; None: as long as it takes."""
    from riseml.spec.config.loader import Overrides
    from riseml.submission.config_source import check_config_source

    spec, _ = check_config_source(source, Overrides(tuple(order.parameters), tuple(order.settings)))
    if spec is None or spec.train.policy.max_duration is None:
        return None
    return spec.train.policy.max_duration / _HOUR


def _leave_out_environment(plan: wire.PlanView) -> wire.PlanView:
    """Return a plan without the variables and the processes of its jobs, which are long."""
    experiments: list[wire.PlanExperiment] = [
        {**experiment, "jobs": [{**job, "environment": {}, "command": []} for job in experiment["jobs"]]}
        for experiment in plan["experiments"]
    ]
    return {**plan, "experiments": experiments}


def _describe_plan(plan: wire.PlanView, need: Need, refusal: str | None) -> str:
    first = plan["experiments"][0]
    jobs = first["jobs"]
    hosts = sorted({job["host"] for job in jobs if job["host"] is not None})
    where = f" on {join_names(hosts)}" if hosts and first["waits"] is None else f"; it waits: {first['waits']}"
    parts = [
        f"It would start {count_noun(need.experiments, 'experiment')}, the first one as {first['id']} with"
        f" {count_noun(len(jobs), 'job')} ({join_names([job['name'] for job in jobs])}){where}."
    ]
    if need.gpus:
        most = "without a longest run" if need.gpu_hours is None else f"at most {need.gpu_hours:.3g} GPU-hours in all"
        parts.append(f"{count_noun(need.gpus, 'GPU')} each, {most}.")
    if plan["refused"]:
        parts.append(f"Its environment is never made: {plan['refused']}.")
    parts.append("Nothing was started." if refusal is None else f"`submit` would refuse it: {refusal}.")
    return " ".join(parts)


def _describe_proposal(fitting: ProjectConfig | None, *, written: bool) -> str:
    from riseml.project_reading.findings import FILL_IN

    beginning = "Wrote riseml.yml" if written else "Proposed a riseml.yml"
    if fitting is None:
        return f"{beginning} that runs as it is: the folder shows no program. Put your program into train.run."
    is_open = any(FILL_IN in word for word in fitting.proposal.words)
    return f"{beginning} that runs {fitting.proposal.program}." + (f" Replace {FILL_IN} in it." if is_open else "")


def _describe_finding(row: Any) -> str:
    place = f" ({row.place} {row.why})" if row.place is not None else ""
    return f"{row.label}: {row.value}{place}"
