"""`status`, `show`, `logs`, `monitor`, `kill`: commands about experiments that exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.accounts import check_account_name, is_account_name
from riseml.base.errors import Refused, RisemlError, UsageError
from riseml.base.names import parse_id
from riseml.base.records import dataclass
from riseml.base.settings import MOST_TAIL
from riseml.cli.arguments import choose_experiment_id, find_last_experiment, parse_since
from riseml.cli.commands.options import (
    IdArgument,
    JsonOption,
    LongLogOption,
    OldFollowOption,
    OldForceOption,
    WatchOption,
    accept_old_letter,
)
from riseml.cli.context import CommandContext, Exit
from riseml.cli.experiment_parts import ExperimentPart, choose_part, print_part
from riseml.cli.output.style import BEFORE_OUTPUT, ENDED_STATES
from riseml.cli.output.text import clean_text
from riseml.cli.refreshed_view import ViewContent, ViewMode, print_view

if TYPE_CHECKING:
    from riseml import wire
    from riseml.analysis.trends import Trends
    from riseml.client.server_client import Client

TEST_PROJECT = "riseml-system-test"
"""The project of the experiments of `system test`. `status -a` does not list those that have ended."""

FollowOption = Annotated[
    bool,
    typer.Option("--follow/--no-follow", show_default=False, help="Wait for more, until the end (the default)."),
]
TailOption = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--tail",
        min=0,
        max=MOST_TAIL,
        metavar="N",
        show_default=False,
        help="Begin with the last N lines that jobs printed, without changes of state before them.",
    ),
]
LongOption = Annotated[bool, typer.Option("-l", "--long", help="Show more of each.")]
CapsuleOption = Annotated[
    bool, typer.Option("--capsule", help="Show what is needed to run it again: image, packages, code, data.")
]
SavedOption = Annotated[
    bool, typer.Option("--saved", help="Show the files of it that are saved in a store, with checksums.")
]
ArchivedOption = Annotated[
    bool, typer.Option("--archived", help="List archived experiments too, and others that have ended.")
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="CONDITION", help="Only those with 'tag:baseline', 'name:warm', star, archived; repeatable."
    ),
]
LastOption = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--last",
        min=0,
        metavar="N",
        show_default=False,
        help="List no more than the newest N; 0: all. Default: all; on a terminal, 100.",
    ),
]

_OF_USER = "."
"""Begins the name of a user where an ID is expected, as RiseML 1.x has it."""

_ON_A_SCREEN = 100  # most experiments of a list on a terminal, unless the user gives another number
_PAGE = 500  # experiments in one answer of the server


@dataclass(frozen=True, slots=True)
class ListChoice:
    """The choice of experiments for a list."""

    ended: bool  # those that have ended, too
    most: int | None  # only this many of the newest ones; None: all
    annotations: Mapping[str, object]  # what users say about them, as `Client.list_experiments` takes it
    user: str | None = None  # whose; None: the caller's
    all_users: bool = False  # those of all users


def show_status(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    identity: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", show_default=False, help="Show this experiment, set or job; `.paul`: list those of paul."
        ),
    ] = None,
    *,
    all_users: Annotated[bool, typer.Option("-u", "--all-users", help="List the experiments of all users.")] = False,
    ended: Annotated[
        bool, typer.Option("-a", "--all", help="List ended experiments too, but not those of `system test`.")
    ] = False,
    archived: ArchivedOption = False,
    where: WhereOption = None,
    last: LastOption = None,
    long: LongOption = False,
    json: JsonOption = False,
    watch: WatchOption = False,
    capsule: CapsuleOption = False,
    saved: SavedOption = False,
) -> None:
    """List running experiments, or show one with its jobs.

    On a team's server `riseml status paul` or `.paul` lists those of paul, and -u those of all users, as far as you see
    them.
    """
    command: CommandContext = context.obj
    part = choose_part(capsule=capsule, saved=saved)
    mode = ViewMode(json, watch)
    usual = _ON_A_SCREEN if command.printer.live and not json else None
    conditions = _read_conditions(where or [], archived=archived)
    choice = ListChoice(
        ended=ended or archived or bool(where),
        most=usual if last is None else last or None,
        annotations=conditions,
        all_users=all_users,
    )
    is_user = identity is not None and identity.startswith(_OF_USER)
    if (identity is not None and not is_user) or part is not ExperimentPart.JOBS:
        try:
            _check_no_list(ended=ended or last is not None, chosen=archived or bool(where), all_users=all_users)
            print_part(command, identity, part, mode, long=long)
        except UsageError:
            if identity is None or part is not ExperimentPart.JOBS or all_users or not _is_user(command, identity):
                raise
        else:
            return
    with command.connect() as client:
        if identity is not None:
            choice = replace(choice, user=read_user(client, identity.removeprefix(_OF_USER), all_users=all_users))
        print_view(command, client, lambda: _fetch_list(command, client, choice, long=long), mode)


def _check_no_list(*, ended: bool, chosen: bool, all_users: bool) -> None:
    """Refuse options of the list beside an ID.

    Raises:
        UsageError: there are some.
    """
    for is_given, options in (
        (ended, "-a and --last are"),
        (chosen, "--archived and --where are"),
        (all_users, "--all-users is"),
    ):
        if is_given:
            raise UsageError(f"{options} for the list of experiments", "leave them out, or the ID")


def _is_user(command: CommandContext, word: str) -> bool:
    """Return True when a word that is no name or tag is a user of a team's server whose experiments the caller sees."""
    if not is_account_name(word):
        return False
    with command.connect() as client, suppress(RisemlError):  # a server of an earlier version does not say who calls
        if client.open_accounts().get_caller()["team"]:
            return bool(client.list_experiments(ended=True, limit=1, annotations={"user": word}))
    return False


def read_user(client: Client, name: str, *, all_users: bool) -> str:
    """Return the name of a user whose experiments are to be listed.

    Raises:
        UsageError: it is not a name of a user, or those of all users are to be listed, too.
        Refused: the server has one user, with another name.
    """
    if all_users:
        raise UsageError("one user and all users contradict each other", "leave out --all-users, or the user")
    check_account_name("user", name)
    caller = client.open_accounts().get_caller()
    if not caller["team"] and caller["user"] != name:
        raise Refused(f"this server has one user, {caller['user']}", "`riseml server init` makes the server of a team")
    return name


def show_experiment(
    context: typer.Context,
    identity: IdArgument = None,
    *,
    capsule: CapsuleOption = False,
    saved: SavedOption = False,
    long: LongOption = False,
    json: JsonOption = False,
    watch: WatchOption = False,
) -> None:
    """Show one experiment: its jobs, its capsule or its saved files.

    `riseml show` in a project shows its last experiment; `riseml show 4` says what `riseml status 4` says.
    A capsule is what is needed to run an experiment again; --saved shows what of it is saved in a store.
    """
    part = choose_part(capsule=capsule, saved=saved)
    print_part(context.obj, identity, part, ViewMode(json, watch), long=long)


def print_logs(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    identity: IdArgument = None,
    *,
    follow: FollowOption = True,
    tail: TailOption = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Begin at TIME: 10m, 2h or 2026-08-31T07:23:46Z.")
    ] = None,
    long: LongLogOption = False,
    json: JsonOption = False,
    old_follow: OldFollowOption = False,
) -> None:
    """Print the log of an experiment or of some jobs; follow it.

    The lines of all jobs are merged, each with the name of its job: `riseml logs 4`, `riseml logs 4.worker`.
    RISEML_LOG=classic prints the log as RiseML did. The exit code is 0 even when the experiment failed.
    """
    from riseml.cli.log_follower import LogDisplay, follow_log
    from riseml.client.server_client import LogQuery

    command: CommandContext = context.obj
    follow = accept_old_letter(command, "-f", "--follow", is_given=old_follow) or follow
    query = LogQuery(follow, tail, None if since is None else parse_since(since, command.now()))
    with command.connect() as client:
        chosen = choose_experiment_id(command, client, identity)
        experiment = client.get_experiment(chosen)
        if tail is not None and experiment["state"] in BEFORE_OUTPUT - {
            "BUILDING"
        }:  # --tail prints no changes of state
            command.printer.print_notes(
                [f"{experiment['id']} is {experiment['state']}; jobs print nothing before they run"]
            )
        follow_log(command, client, experiment | {"id": chosen}, LogDisplay(json=json, long=long), query)


def monitor_experiment(
    context: typer.Context,
    identity: Annotated[
        str | None, typer.Argument(metavar="ID", show_default=False, help="Default: everything that runs.")
    ] = None,
    *,
    gpus: Annotated[bool, typer.Option("-g", "--gpu", help="Show what each GPU does, and whose it is.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print once instead of every 2 s.")] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Print what jobs have used since TIME: 2h or 2026-08-31T07:23:46Z."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what jobs use, and what they asked for, every 2 s.

    With an ID until that experiment ends; without one, everything that runs, until Ctrl-C. `--since` prints once
    what an experiment has used, also when it has ended: the server keeps every second or ten seconds of the last
    hour, ten seconds of the last day, and minutes for good.
    """
    from riseml.analysis.trends import Trends

    command: CommandContext = context.obj
    if since is not None:
        from riseml.cli.commands.past_use import print_past_use

        print_past_use(command, None if gpus else identity, parse_since(since, command.now()), json=json)
        return
    mode = ViewMode(json, not once)
    with command.connect() as client:
        chosen = None if identity is None else choose_experiment_id(command, client, identity)
        if gpus:
            print_view(command, client, lambda: _fetch_gpus(command, client, chosen), mode)
            return
        trends = None if once or json else Trends()
        print_view(command, client, lambda: _fetch_samples(command, client, chosen, trends), mode)


def kill_experiments(
    context: typer.Context,
    identities: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", show_default=False, help="Default: the project's last experiment."),
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Do not ask where no ID is given.")] = False,
    json: JsonOption = False,
    force_letter: OldForceOption = False,
) -> None:
    """End experiments with all their jobs."""
    command: CommandContext = context.obj
    failed: RisemlError | None = None
    kills: list[wire.Kill] = []
    with command.connect() as client:
        force = force or force_letter  # RiseML's own `kill -f` stays
        for identity in identities or [_choose_last_to_kill(command, client, force=force)]:
            try:
                kills.append(_kill_experiment(client, choose_experiment_id(command, client, identity)))
            except RisemlError as error:
                command.print_error(error)
                failed = failed or error
            else:
                if not json:
                    command.printer.print_lines([_describe_kill(kills[-1])])
    if json:
        command.printer.print_json({"kills": kills})
    if failed is not None:
        raise Exit(failed.exit_code)


def _read_conditions(texts: Sequence[str], *, archived: bool) -> dict[str, object]:
    """Return the conditions of `--where` as parameters of the route.

    Raises:
        UsageError: a condition is about something else than what users say.
    """
    query: dict[str, object] = {"archived": "shown"} if archived else {}
    if not texts:
        return query
    from riseml.analysis.filters import parse_where  # late: a list without conditions starts faster

    conditions = [(text, condition) for text in texts for condition in parse_where(text)]
    for text, condition in conditions:
        if condition.sign != ":":
            raise UsageError(
                f"--where {text!r}: the list of experiments is chosen by tag:, name:, star and archived",
                "`riseml results --where` compares parameters, metrics, states and times",
            )
    values = [(condition.name, condition.value) for _, condition in conditions]
    names = [value for name, value in values if name == "name"]
    if len(set(names)) > 1:
        raise UsageError("--where has several name: conditions", "write one part of the name")
    tags = [value for name, value in values if name == "tag"]
    query |= {"tag": tags} if tags else {}
    query |= {"name": names[0]} if names else {}
    query |= {"starred": "true"} if ("star", "") in values else {}
    return query | ({"archived": "only"} if ("archived", "") in values else {})


def _fetch_list(command: CommandContext, client: Client, choice: ListChoice, *, long: bool) -> ViewContent:
    from riseml.cli.output.experiment_views import list_experiments

    experiments, older = _fetch_pages(client, choice)
    if experiments:
        named = _name_users(experiments) if choice.all_users or choice.user is not None else experiments
        lines = list_experiments(named, command.now(), command.printer.style, long=long)
    elif choice.annotations:
        lines = ["No experiment meets the conditions; `riseml status -a --archived` lists all."]
    elif choice.ended:
        lines = ["There is no experiment; `riseml status --archived` lists archived ones, too."]
    else:
        lines = ["No experiment is running; `riseml status -a` lists all."]
    lines += [clean_text(message) for message in list_waits(experiments)]
    if older:
        lines = [*lines, f"These are the newest {choice.most:,}; `--last N` lists more of them."]
    return ViewContent({"experiments": experiments}, lines, final=False)


def list_waits(experiments: Sequence[wire.ExperimentView]) -> list[str]:
    """Return which experiments wait for others, and why some wait for a leader of the swarm of their hosts."""
    singles = [single for experiment in experiments for single in (experiment, *experiment["experiments"])]
    waits = [
        f"{single['id']} {single['message']}" if single["reason"] == "AFTER" else single["message"]
        for single in singles
        if single["reason"] in ("AFTER", "NO_LEADER") and single["state"] == "PENDING"
    ]
    return list(dict.fromkeys(filter(None, waits)))


def _fetch_pages(client: Client, choice: ListChoice) -> tuple[list[wire.ExperimentView], bool]:
    """Return the experiments, oldest first, and whether there are older ones that were not requested.

    Experiments of `riseml system test` that have ended are left out, and do not count. Each request asks for some of
    them, so that a long list does not keep the server from its other work.
    """
    if choice.all_users:
        return _fetch_all_users(client, choice)
    conditions = {**choice.annotations, **({} if choice.user is None else {"user": choice.user})}
    experiments: list[wire.ExperimentView] = []
    before = None
    while choice.most is None or len(experiments) <= choice.most:  # one more shows whether there are older ones
        limit = _PAGE if choice.most is None else min(_PAGE, choice.most + 1 - len(experiments))
        page = client.list_experiments(ended=choice.ended, limit=limit, before=before, annotations=conditions)
        experiments = [*_drop_tests(page), *experiments]
        if len(page) < limit:
            return experiments, False
        before = parse_id(page[0]["id"]).number
    return experiments[-choice.most :], True


def _fetch_all_users(client: Client, choice: ListChoice) -> tuple[list[wire.ExperimentView], bool]:
    """Return the experiments of all users in the order of their submission, and whether there are older ones."""
    conditions = {**choice.annotations, "all_users": "true"}
    experiments: list[wire.ExperimentView] = []
    while choice.most is None or len(experiments) <= choice.most:
        limit = _PAGE if choice.most is None else min(_PAGE, choice.most + 1 - len(experiments))
        page = client.list_experiments(ended=choice.ended, limit=limit, annotations=conditions)
        experiments = [*_drop_tests(page), *experiments]
        if len(page) < limit:
            return experiments, False
        conditions["older_than"] = page[0]["id"]
    return experiments[-choice.most :], True


def _drop_tests(experiments: Sequence[wire.ExperimentView]) -> list[wire.ExperimentView]:
    """Return the experiments without those of `riseml system test` that have ended."""
    return [
        experiment
        for experiment in experiments
        if experiment["project"] != TEST_PROJECT or experiment["state"] not in ENDED_STATES
    ]


def _name_users(experiments: Sequence[wire.ExperimentView]) -> list[wire.ExperimentView]:
    """Return experiments whose IDs name their users: `paul.18`."""
    from riseml.client.foreign_ids import name_experiment

    return [name_experiment(experiment, experiment["user"]) for experiment in experiments]


def _fetch_samples(command: CommandContext, client: Client, identity: str | None, trends: Trends | None) -> ViewContent:
    """Return the current samples of jobs, after adding them to `trends` for the next call."""
    from riseml.cli.output.monitor_view import list_use

    answer = client.get_samples(identity)
    samples = answer["samples"]
    printer = command.printer
    ended = identity is not None and client.get_experiment(identity)["state"] in ENDED_STATES
    if trends is not None:
        trends.add_samples(samples, command.now().timestamp())
    if not samples:
        lines = ["No job is running; `riseml status` shows what waits."]
    else:
        lines = list_use(samples, printer.style, trends, sparks=printer.draws_bars)
    return ViewContent(answer, lines, final=ended)


def _fetch_gpus(command: CommandContext, client: Client, identity: str | None) -> ViewContent:
    from riseml.cli.output.gpu_view import list_gpu_use, list_gpu_warnings

    gpus = client.get_gpus(identity)
    ended = identity is not None and client.get_experiment(identity)["state"] in ENDED_STATES
    warnings = [f"warning: {clean_text(line)}" for line in list_gpu_warnings(gpus)]
    lines = [*list_gpu_use(gpus, command.printer.style, identity=identity), *warnings]
    return ViewContent(gpus, lines, final=ended)


def _choose_last_to_kill(command: CommandContext, client: Client, *, force: bool) -> str:
    """Return the ID of the project's last experiment; ask the user first on a terminal."""
    last = find_last_experiment(command, client)
    if last["state"] in ENDED_STATES:
        experiments = client.list_experiments(ended=False, project=last["project"])
        running = [other["id"] for other in experiments if other["state"] not in ENDED_STATES]
        if running:
            which = f"still running in {last['project']}: {', '.join(running)}"
            command.printer.print_notes([f"{which}; `riseml kill {' '.join(running)}` ends what is named"])
    elif command.asks and not force:
        question = f"Kill experiment {last['id']} of {last['project']} ({last['state']})?"
        if not command.ask(question):
            raise Exit(0)
    return last["id"]


def _kill_experiment(client: Client, identity: str) -> wire.Kill:
    before = client.get_experiment(identity)
    has_ended = before["state"] in ENDED_STATES
    saves = not before["closed"] and before["saved"] is not None
    kill: wire.Kill = {
        "id": before["id"],
        "type": before["type"],
        "killed": False,
        "gave_up": False,
        "state": before["state"],
    }
    if has_ended and not saves:
        return kill
    after = client.kill_experiment(identity)
    return {**kill, "id": after["id"], "killed": not has_ended, "gave_up": has_ended, "state": after["state"]}


def _describe_kill(kill: wire.Kill) -> str:
    subject = f"{'series' if kill['type'] == 'set' else 'experiment'} {kill['id']}"  # the words of RiseML 1.x
    if kill["killed"]:
        return clean_text(f"killed {subject}")
    if kill["gave_up"]:
        text = f"its last copy is given up, and `riseml save {kill['id']}` copies its output later"
        return clean_text(f"{subject} has already ended: {kill['state']}; {text}")
    return clean_text(f"{subject} has already ended: {kill['state']}")
