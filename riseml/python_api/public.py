"""The functions of `riseml` for programs: submit, search, map, get, runs, results."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.base.settings import ExecutorName
from riseml.python_api.errors import add_hints
from riseml.python_api.function_calls import (
    POINT,
    Call,
    check_options,
    check_points,
    find_function,
    make_call,
    write_command,
    write_map_command,
)
from riseml.python_api.notes import read_allowed, read_message
from riseml.python_api.parameter_texts import list_pairs, make_plain
from riseml.python_api.predecessors import list_inputs, list_predecessors
from riseml.python_api.program import Program, Tell, ignore_sentence
from riseml.python_api.runs import Run
from riseml.python_api.shapes import SpecDict

if TYPE_CHECKING:
    from riseml import wire
    from riseml.python_api.predecessors import After, Input
    from riseml.submission.config_source import ConfigSource

Project = str | os.PathLike[str] | SpecDict
"""A riseml.yml, the folder of one, or what it would say; the files of the project are then in the working directory."""

Source = Project | Callable[..., Any] | Call
"""A project; or a function of the project in the working directory, or a call of one."""

_MOST_RUNS = 1000


@dataclass(frozen=True, slots=True)
class Options:
    """What a call says about its submission, beside riseml.yml."""

    allow_env: Sequence[str]  # variables of the environment that riseml.yml may pass on
    message: str | None  # a note on the run
    after: list[str]  # the experiments that it waits for
    pull: bool = False  # ask the registry for the newest image


def submit(  # noqa: PLR0913  # the options of `riseml train`, each by its name
    source: Source = ".",
    /,
    *arguments: object,
    parameters: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
    executor: str | None = None,
    allow_env: Sequence[str] = (),
    message: str | None = None,
    pull: bool = False,
    after: After | Sequence[After] = (),
    inputs: Mapping[str, Input] | None = None,
    project: Project = ".",
    tell: Tell = ignore_sentence,
    **named: object,
) -> Run:
    """Submit a project, or a call of one of its functions, and return the run at once.

    It does what `riseml train -d` does: the file is checked, the project's files are sent, the user's own server is
    started when it does not run. It asks nothing: what the command would ask, the arguments allow.

    Example:
        run = riseml.submit("riseml.yml", parameters={"lr": 0.1})
        run = riseml.submit(training.train, epochs=3)
        run.wait().returned()

    Args:
        source: a riseml.yml, its folder, or a `riseml.SpecDict`; or a function that a module of the project defines at
            its top, or a `riseml.call` of one, whose arguments may have the names of these options.
        arguments: of the function, as `named`; what JSON can hold.
        parameters: as `-p`: {"lr": 0.1}; a list is a grid, and the run is a set.
        settings: as `--set`: {"train.resources.gpus": 2}.
        executor: what runs the jobs: "docker", ...; None: what the server uses.
        allow_env: names of variables of the environment that riseml.yml may pass on.
        message: a note on the run.
        pull: ask the registry for the newest image.
        after: what must have FINISHED before it starts: runs, or their IDs; "4:any" accepts any end of 4.
        inputs: outputs that its jobs read, as `train.inputs`: {"model": run, "data": "output://4/data"}.
        project: with a function: the riseml.yml, its folder, or a `riseml.SpecDict`, that says where it runs.
        tell: takes sentences about how it goes: "Syncing project (12 kB, 3 files)...".
        named: arguments of the function.

    Raises:
        SpecError: riseml.yml has problems; all of them are in `problems`.
        Refused: a variable was not allowed, or jobs would run as processes and nothing allows that.
        RisemlError: as the command; its `hint` says what to do next.
    """
    with add_hints():
        pairs = [*list_pairs(settings, "settings"), *list_inputs(inputs)]
        if callable(source):
            options: dict[str, object] = {"parameters": parameters, "settings": settings, "executor": executor}
            options |= {"allow_env": allow_env, "message": message, "pull": pull, "after": after, "inputs": inputs}
            check_options(source, _list_given({**options, "project": project, "tell": tell}))
            source, arguments, named = make_call(source, arguments, named), (), {}
        if arguments or named:
            surplus = ", ".join([*(repr(argument) for argument in arguments), *named])
            raise UsageError(f"submit got {surplus}, which only a function takes", "write parameters={...}")
        if isinstance(source, Call):
            config = _find_config(project)
            function = find_function(source.function, config.project.folder)
            pairs.append(("train.run", json.dumps(write_command(function, source.arguments, source.named))))
        else:
            config = _find_config(source)
        return _submit(
            config,
            (list_pairs(parameters, "parameters"), pairs),
            _make_program(executor, tell),
            Options(allow_env, message, list_predecessors(after), pull=pull),
        )


def map(  # noqa: PLR0913  # as `submit`; the name is Python's own for this, and stands behind `riseml.`
    function: Callable[..., Any],
    points: Iterable[object],
    *,
    concurrency: int | None = None,
    settings: Mapping[str, object] | None = None,
    executor: str | None = None,
    allow_env: Sequence[str] = (),
    after: After | Sequence[After] = (),
    inputs: Mapping[str, Input] | None = None,
    project: Project = ".",
    tell: Tell = ignore_sentence,
) -> Run:
    """Call a function of the project once for each point, each call in an experiment of one set; return the set.

    Example:
        run = riseml.map(training.train, [{"lr": 0.1}, {"lr": 0.01}], concurrency=2)
        run.wait().returned()  # a list with what each call returned

    Args:
        function: defined at the top of a module of the project.
        points: for each call a dictionary of named arguments, a list of arguments, or one argument.
        concurrency: how many calls run at the same time; None: one.
        settings: as `--set`.
        executor: see `submit`.
        allow_env: see `submit`.
        after: see `submit`.
        inputs: see `submit`.
        project: the riseml.yml, its folder, or a `riseml.SpecDict`, that says in which environment the calls run.
        tell: see `submit`.

    Raises:
        RisemlError: as `submit`.
    """
    with add_hints():
        calls = list(points) if isinstance(points, Iterable) and not isinstance(points, str | Mapping) else []
        if not calls:
            raise UsageError("map takes a list of points", 'write riseml.map(train, [{"lr": 0.1}, {"lr": 0.01}])')
        check_points(function, calls)
        config = _find_config(project)
        place = find_function(function, config.project.folder)
        chosen = [
            ("train.parameters", json.dumps({POINT: list(range(len(calls)))})),
            ("train.concurrency", str(1 if concurrency is None else concurrency)),
            ("train.run", json.dumps(write_map_command(place, calls))),
        ]
        pairs = [*list_pairs(settings, "settings"), *list_inputs(inputs), *chosen]
        options = Options(allow_env, None, list_predecessors(after))
        return _submit(config, ([], pairs), _make_program(executor, tell), options)


def search(  # noqa: PLR0913  # as `submit`
    source: Project = ".",
    *,
    metric: str | None = None,
    goal: str | None = None,
    trials: int | None = None,
    method: str | None = None,
    concurrency: int | None = None,
    parameters: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
    executor: str | None = None,
    allow_env: Sequence[str] = (),
    message: str | None = None,
    after: After | Sequence[After] = (),
    inputs: Mapping[str, Input] | None = None,
    tell: Tell = ignore_sentence,
) -> Run:
    """Submit a search and return its set: `run.results()` are its trials, the best one first.

    Example:
        space = {"lr": {"log": {"min": 1e-4, "max": 0.1}}}
        run = riseml.search("riseml.yml", metric="accuracy", goal="maximize", trials=40, parameters=space)

    Args:
        source: a riseml.yml, its folder, or a `riseml.SpecDict`.
        metric: what is searched for; None: `train.search` of the file says it, as for all that follow.
        goal: "maximize" or "minimize".
        trials: how many points are tried.
        method: "tpe", "random", "cma-es", ...
        concurrency: how many trials run at the same time.
        parameters: the space: values, lists, and distributions as riseml.yml writes them.
        settings: see `submit`.
        executor: see `submit`.
        allow_env: see `submit`.
        message: see `submit`.
        after: see `submit`.
        inputs: see `submit`.
        tell: see `submit`.

    Raises:
        RisemlError: as `submit`.
    """
    keys = {"metric": metric, "goal": goal, "trials": trials, "method": method}
    pairs = [(f"train.search.{name}", str(value)) for name, value in keys.items() if value is not None]
    pairs += [] if concurrency is None else [("train.concurrency", str(concurrency))]
    with add_hints():
        pairs += [*list_pairs(settings, "settings"), *list_inputs(inputs)]
        pairs += [(f"train.parameters.{name}", text) for name, text in list_pairs(parameters, "parameters")]
        options = Options(allow_env, message, list_predecessors(after))
        return _submit(_find_config(source), ([], pairs), _make_program(executor, tell), options)


def get(identity: int | str) -> Run:
    """Return an experiment or a set by its ID, its name or a tag.

    Example:
        riseml.get(4).state

    Raises:
        NotFound: there is none.
    """
    from riseml.client.identities import check_identities, find_identity

    with add_hints():
        if isinstance(identity, bool) or not isinstance(identity, int | str):
            raise UsageError(
                f"an ID is a whole number or a text, not {identity!r}",
                f'write get("{identity}"): as numbers, 144.1 and 144.10 are one',
            )
        check_identities([str(identity)])
        program = Program()
        with program.connect() as client:
            canonical_id = find_identity(client, str(identity))
            return Run(program, client.get_experiment(canonical_id)["id"])


def runs(
    *,
    project: str | None = None,
    tag: str | None = None,
    name: str | None = None,
    active: bool = False,
    limit: int = 100,
) -> list[Run]:
    """Return experiments and sets, the newest first.

    Args:
        project: only those of this project.
        tag: only those that have this tag.
        name: only those that have this name.
        active: only those that have not ended.
        limit: at most so many, up to 1,000.

    Raises:
        UsageError: the limit is no such number.
    """
    with add_hints():
        if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= _MOST_RUNS:
            raise UsageError(f"limit is {limit!r}", f"give a whole number from 1 to {_MOST_RUNS:,}")
        program = Program()
        conditions = {key: [text] if key == "tag" else text for key, text in (("tag", tag), ("name", name)) if text}
        with program.connect() as client:
            views = client.list_experiments(
                ended=not active, project=project, limit=limit, companions=False, annotations=conditions
            )
        return [Run(program, view["id"]) for view in reversed(views)]


def compare(*identities: int | str) -> wire.ComparisonView:
    """Return what differs between experiments, as `riseml compare --json` prints it.

    Raises:
        UsageError: there are fewer than two.
    """
    with add_hints():
        if len(identities) < 2:
            raise UsageError("compare takes two experiments or more", "write riseml.compare(4, 5)")
        names = [get(identity).id for identity in identities]
        with Program().connect() as client:
            return client.compare_experiments(names)


def _list_given(options: Mapping[str, object]) -> set[str]:
    """Return the names of the options of `submit` that a call has given."""
    defaults = inspect.signature(submit).parameters
    return {name for name, value in options.items() if value is not defaults[name].default}


def _find_config(source: object) -> ConfigSource:
    from riseml.submission.config_source import read_config_source

    if isinstance(source, Mapping):
        return _make_config(source)
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"a project is the path of a riseml.yml or of its folder, not {source!r}", 'write submit("riseml.yml")'
        )
    path = Path(source)
    return read_config_source(Path.cwd(), path / "riseml.yml" if path.is_dir() else path)


def _make_config(spec: Mapping[str, object]) -> ConfigSource:
    """Return a spec as a riseml.yml of the working directory: JSON is YAML."""
    from riseml.files.project.folder import Project as ProjectFolder
    from riseml.submission.config_source import ConfigSource

    folder = Path.cwd()
    text = json.dumps(make_plain("spec", spec), indent=2, ensure_ascii=False, allow_nan=False)
    return ConfigSource(ProjectFolder(folder, folder / "riseml.yml"), "spec", text)


def _make_program(executor: str | None, tell: Tell) -> Program:
    if executor is not None and executor not in get_args(ExecutorName):
        raise UsageError(f"executor is {executor!r}", f"it is one of {', '.join(get_args(ExecutorName))}")
    program = Program(tell=tell)
    return program if executor is None else replace(program, environ={**program.environ, "RISEML_EXECUTOR": executor})


def _submit(
    source: ConfigSource,
    pairs: tuple[list[tuple[str, str]], list[tuple[str, str]]],
    program: Program,
    options: Options,
) -> Run:
    from riseml.submission.submitting import (
        confirm_environment,
        prepare_submission,
        send_with_revision,
        submit_once,
    )

    allowed = read_allowed(options.allow_env)
    note = read_message(options.message)
    submission = prepare_submission(program, source, *pairs, pull=options.pull)
    if note is not None:
        submission["annotation"] = {"note": note}
    if options.after:
        submission["after"] = options.after
    confirm_environment(program, source, submission, allowed)
    with closing(send_with_revision(program, source, submission, quiet=False)) as client:
        return Run(program, submit_once(client, submission)["id"])
