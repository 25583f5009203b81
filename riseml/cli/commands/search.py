"""`search`: pause, resume or stop a set that goes on, or change how many of its experiments run at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import UsageError
from riseml.cli.commands.options import JsonOption
from riseml.cli.output.style import ENDED_STATES
from riseml.cli.output.text import clean_text, count_noun
from riseml.client.identities import check_identities, find_identity

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext

_BEGUN = frozenset({"STARTING", "RUNNING"})


def change_search(  # one parameter for each option of the command
    context: typer.Context,
    identity: Annotated[str, typer.Argument(metavar="ID", show_default=False, help="A set, with a search or a grid.")],
    *,
    pause: Annotated[bool, typer.Option("--pause", help="Start no further experiment until --resume.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Let a paused set go on.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Start nothing further; what runs goes on to its end.")] = False,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", min=1, max=10000, metavar="N", show_default=False, help="Run N at once."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Pause, resume or stop a set, or change its concurrency.

    The concurrency is how many experiments of the set run at the same time.
    What runs goes on in each case; `riseml kill ID` ends it. A set stays paused when the server is started again.
    """
    command: CommandContext = context.obj
    change = _make_change(pause=pause, resume=resume, stop=stop, concurrency=concurrency)
    check_identities([identity])
    with command.connect() as client:
        changed = client.change_set(find_identity(client, identity), change)
    if json:
        command.printer.print_json(changed)
    else:
        command.printer.print_lines([describe_changed_set(changed, change)])


def _make_change(*, pause: bool, resume: bool, stop: bool, concurrency: int | None) -> wire.SetChangeRequest:
    """Return the request for these options.

    Raises:
        UsageError: there is none, or they contradict each other.
    """
    chosen = [name for name, is_set in (("--pause", pause), ("--resume", resume), ("--stop", stop)) if is_set]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} do not go together", "give one of them")
    if stop and concurrency is not None:
        raise UsageError(
            "--stop and --concurrency do not go together: after --stop nothing further starts", "give one of them"
        )
    if not chosen and concurrency is None:
        raise UsageError(
            "nothing to change: give --pause, --resume, --stop or --concurrency N",
            "`riseml status ID` shows how far a set is",
        )
    return {"paused": True if pause else False if resume else None, "concurrency": concurrency, "stop": stop}


def describe_changed_set(experiment: wire.ExperimentView, change: wire.SetChangeRequest) -> str:
    """Return what follows from a change, as a sentence: `Set 144 is paused; 2 of its experiments go on.`"""
    name = clean_text(experiment["id"])
    states = [member["state"] for member in experiment["experiments"]]
    count = sum(state in _BEGUN for state in states)
    going = f"{count_noun(count, 'experiment')} of it {'runs' if count == 1 else 'run'} on" if count else ""
    if change["stop"]:
        search = experiment.get("search")
        is_over = ENDED_STATES.issuperset(states) and (search is None or search["end"] is not None)
        if is_over:
            return f"Set {name} has already ended: {clean_text(experiment['state'])}."
        return f"Set {name} starts nothing further" + (f"; {going}." if going else ".")
    parts = [] if change["concurrency"] is None else [f"runs {change['concurrency']} at the same time"]
    if experiment["reason"] == "PAUSED":
        resume = f"`riseml search {name} --resume` lets it go on"
        return f"Set {name} {'; '.join([*parts, 'is paused', *([going] if going else []), resume])}."
    return f"Set {name} {' and '.join([*parts, *([] if change['paused'] is None else ['goes on'])])}."
