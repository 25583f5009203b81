"""One session of an agent: where it works, which plans it was shown, what it has started."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.agents.budget import Need, SessionLimits, measure_use, show_budget
from riseml.base.errors import NotFound, Refused, UsageError
from riseml.base.records import dataclass
from riseml.python_api.program import Program

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client
    from riseml.submission.config_source import ConfigSource

Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the user who starts a session allows the agent."""

    limits: SessionLimits
    allow_env: tuple[str, ...] = ()  # variables of the user that riseml.yml may pass on
    stops_any: bool = False  # it may stop experiments that it has not started


@dataclass(frozen=True, slots=True)
class Order:
    """What an agent wants to submit."""

    project: str  # the riseml.yml or its folder, as the agent wrote it
    parameters: Pairs
    settings: Pairs
    message: str | None  # a note on the run
    pull: bool  # ask the registry for the newest image

    def make_token(self, source: ConfigSource, snapshot: str, server: str) -> str:
        """Return the digest of all that decides what runs: the file, the project's files, the options, the server."""
        options = (self.parameters, self.settings, self.message, self.pull)
        parts = [str(source.project.folder), source.name, source.text, snapshot, server, *options]
        return sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """A dry run that the agent has seen."""

    order: Order
    config: str  # the text of riseml.yml
    snapshot: str  # digest of the project's files
    server: str  # address of the server that made it
    need: Need
    started: str | None = None  # ID of the experiment that was submitted; None: none was


@dataclass(frozen=True, slots=True)
class StartedRun:
    """An experiment or a set that the agent has started."""

    id: str
    need: Need
    gpu_hours: float | None = None  # that it has had; None: it had not ended when it was last seen


@dataclass(slots=True)
class AgentSession:
    """What one agent has seen and done.

    Example:
        AgentSession(Path.cwd(), os.environ, Permissions(SessionLimits(experiments=20)))
    """

    folder: Path  # the agent submits projects in it, or below
    environ: Mapping[str, str]  # of the user
    permissions: Permissions
    plans: dict[str, ShownPlan] = field(default_factory=dict)  # by token
    started: dict[str, StartedRun] = field(default_factory=dict)  # by ID
    lock: threading.RLock = field(default_factory=threading.RLock)  # tools run in threads; held while one submits

    def find_source(self, project: str) -> ConfigSource:
        """Return the riseml.yml that a path names.

        Raises:
            Refused: it is outside of the folder of the session.
            NotFound: there is none.
        """
        from riseml.submission.config_source import read_config_source

        path = self.find_path(project)
        source = read_config_source(self.folder, path / "riseml.yml" if path.is_dir() else path)
        if not source.project.folder.resolve().is_relative_to(self.folder.resolve()):
            raise _refuse_place(project, self.folder)
        return source

    def find_path(self, project: str) -> Path:
        """Return a path below the folder of the session, as it is without links.

        Raises:
            Refused: it leads elsewhere.
            UsageError: it is no path.
        """
        if "\0" in project or not project.strip():
            raise UsageError(f"project is {project!r}", "give the path of a riseml.yml, or of its folder")
        path = (self.folder / project).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise _refuse_place(project, self.folder)
        return path

    def make_program(self, sentences: list[str] | None = None) -> Program:
        """Return the caller of a submission; notes and warnings go to `sentences`."""

        def tell(sentence: str) -> None:
            is_remark = sentence.startswith(("note: ", "warning: ")) or " warning: " in sentence
            if is_remark and sentences is not None:
                sentences.append(sentence)

        return Program(environ=self.environ, folder=self.folder, tell=tell)

    @contextmanager
    def connect(self) -> Iterator[Client]:
        """Give a client of the user's server."""
        with self.make_program().connect() as client:
            yield client

    def find_plan(self, token: str) -> ShownPlan:
        """Return the plan of a token.

        Raises:
            Refused: no plan of this session has it.
        """
        plan = self.plans.get(token)
        if plan is None:
            raise Refused(
                f"no plan of this session has the token {token[:40]!r}", "call `plan`, and give `submit` its token"
            )
        return plan

    def note_start(self, token: str, identity: str) -> None:
        """Note that a plan was submitted."""
        plan = self.plans[token]
        self.plans[token] = replace(plan, started=identity)
        self.started[identity] = StartedRun(identity, plan.need)

    def read_budget(self, client: Client) -> wire.AgentBudget:
        """Return the budget with what was used of it now."""
        with self.lock:
            hours = [self._measure(client, run) for run in list(self.started.values())]
            count = sum(run.need.experiments for run in self.started.values())
        return show_budget(self.permissions.limits, count, hours)

    def _measure(self, client: Client, run: StartedRun) -> float:
        if run.gpu_hours is not None:
            return run.gpu_hours
        most = run.need.gpu_hours or 0.0
        if run.need.gpus == 0:
            return 0.0
        try:
            use = measure_use(client.get_experiment(run.id), run.need.gpus)
        except NotFound:  # it was removed: the agent keeps what it was charged
            return most
        if use is None:
            return most
        self.started[run.id] = replace(run, gpu_hours=use)
        return use

    def check_stop(self, identity: str) -> None:
        """Refuse to stop what the agent has not started, unless the user allows it.

        Raises:
            Refused: it is another experiment.
        """
        is_own = any(identity == own or identity.startswith(f"{own}.") for own in self.started)
        if not is_own and not self.permissions.stops_any:
            raise Refused(
                f"this session has not started experiment {identity}, and may not stop it",
                f"ask the user to type `riseml kill {identity}`, or to restart `riseml mcp --stop-any`",
            )


def _refuse_place(project: str, folder: Path) -> Refused:
    return Refused(
        f"{project} is outside of {folder}, the folder of this session",
        "ask the user to start `riseml mcp` in the folder of that project",
    )


def describe_change(plan: ShownPlan, source: ConfigSource, snapshot: str) -> str:
    """Return what differs from what the agent was shown."""
    if source.text != plan.config:
        return f"{source.name} has changed"
    return "files of the project have changed" if snapshot != plan.snapshot else "the server is another one"


def list_texts(values: Mapping[str, object] | None, subject: str) -> Pairs:
    """Return the values of an agent as the command line takes them."""
    from riseml.python_api.parameter_texts import list_pairs

    return list_pairs(values, subject)


def join_names(names: Sequence[str], most: int = 10) -> str:
    """Return names in one line: `a, b, ... and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f", ... and {more} more" if more > 0 else "")
