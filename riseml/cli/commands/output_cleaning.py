"""`system clean --outputs` and `keep`: remove or keep whole outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import EngineError, Refused, UsageError
from riseml.base.records import dataclass
from riseml.cli.commands.options import JsonOption
from riseml.client.identities import check_identities, find_identity

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client


@dataclass(frozen=True, slots=True)
class OutputChoice:
    """Which outputs a clean-up removes; texts as the user has typed them, None: not given."""

    older: str | None = None
    larger: str | None = None
    project: str | None = None

    @property
    def is_given(self) -> bool:
        """True when the user has typed one of the options."""
        return (self.older, self.larger, self.project) != (None, None, None)

    def to_query(self) -> dict[str, str]:
        """Return the query of the route.

        Raises:
            UsageError: a text is invalid or empty, or no choice is given.
        """
        from riseml.spec.scalars.quantities import parse_duration
        from riseml.spec.scalars.texts import BadText

        for name, text in (("older", self.older), ("larger", self.larger), ("project", self.project)):
            if text is not None and not text.strip():
                raise UsageError(
                    f"--{name} is empty", "give it a value, or leave it out: is a variable of the shell unset?"
                )
        if not self.is_given:
            raise UsageError(
                "--outputs alone would remove every output", "say which: --older 30d, --larger 1G or --project NAME"
            )
        query = {"project": self.project} if self.project else {}
        try:
            if self.older:
                query["older"] = str(int(parse_duration(self.older)))
        except BadText as bad:
            raise UsageError(f"--older {bad.problem}", bad.hint) from None
        if self.larger:
            query["larger"] = str(_parse_bytes(self.larger))
        return query


def _parse_bytes(text: str) -> int:
    from riseml.base.sizes import SIZE_HINT, BadSize, parse_size

    try:
        size = parse_size(text)
        if not size.prefix:
            raise UsageError(f"--larger {text} has no unit", SIZE_HINT)
        return int(size.count_bytes())
    except BadSize as bad:
        raise UsageError(f"--larger {text!r} {bad.problem}", bad.hint) from None


def clean_outputs(command: CommandContext, choice: OutputChoice, *, yes: bool, json: bool) -> None:
    """Show outputs of ended experiments, and remove them after the user's yes."""
    from riseml.cli.output.file_views import list_outputs, summarise_outputs

    query = choice.to_query()
    with command.connect() as client:
        outputs = _find_outputs(client, query)
        whole = [output for output in outputs if output["problem"] is None]
        if not json:
            command.printer.print_lines(list_outputs(outputs, command.printer.style))
            command.printer.say(summarise_outputs(whole))
        is_confirmed = bool(whole) and (yes or (not json and _confirm_removal(command)))
        if is_confirmed:
            outputs = [_remove(client, output) if output["problem"] is None else output for output in outputs]
    if json:
        command.printer.print_json({"outputs": outputs, "next": None, "next_sub": None})
    elif is_confirmed:
        command.printer.say(summarise_outputs([output for output in outputs if output["removed"]], removed=True))
    elif whole:
        command.printer.say("Nothing was removed: add --yes to remove it.")
    _raise_first_problem(outputs)


def _raise_first_problem(outputs: Iterable[wire.OutputView]) -> None:
    for output in outputs:
        if output["problem"] is not None:
            raise EngineError(f"output {output['experiment']}: {output['problem']}", "try again later")


def _confirm_removal(command: CommandContext) -> bool:
    """Ask the user; return False where nobody can be asked.

    Raises:
        Refused: the user said no.
    """
    if not command.asks:
        return False
    if not command.ask("Remove these outputs for good?"):
        raise Refused("nothing was removed")
    return True


def _find_outputs(client: Client, query: dict[str, str]) -> list[wire.OutputView]:
    outputs: list[wire.OutputView] = []
    place: dict[str, str] = {}  # query parameters of the next page
    last: tuple[int, float] | None = None  # grows with each page
    while True:
        page = client.list_outputs({**query, **place})
        outputs += page["outputs"]
        if page["next"] is None:
            return outputs
        sub = page["next_sub"]
        place = {"before": str(page["next"]), **({} if sub is None else {"sub": str(sub)})}
        reached = (-page["next"], math.inf if sub is None else sub)
        if last is not None and reached <= last:
            return outputs
        last = reached


def _remove(client: Client, output: wire.OutputView) -> wire.OutputView:
    """Remove one output; a large one takes several requests."""
    from riseml.base.errors import RisemlError

    try:
        while not (removed := client.remove_output(output["experiment"]))["removed"]:
            if not removed["files"]:
                return {**output, "problem": "it is not removed completely"}
    except RisemlError as error:
        return {**output, "problem": error.message}
    return {**output, "removed": True}


def keep_outputs(
    context: typer.Context,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", show_default=False, help="Default: show what is kept.")
    ] = None,
    *,
    release: Annotated[bool, typer.Option("--no", help="Keep them no longer.")] = False,
    json: JsonOption = False,
) -> None:
    """Keep outputs: `riseml system clean` and `rm` leave them alone.

    `riseml keep 4`, `riseml keep --no 4`. The ID of a set stands for all its experiments. Without an ID the command
    shows what is kept.
    """
    command: CommandContext = context.obj
    if release and not ids:
        raise UsageError("--no needs an ID", "`riseml keep` shows what is kept")
    check_identities(ids or [])
    with command.connect() as client:
        chosen = [find_identity(client, identity) for identity in ids or []]
        kept_list = client.list_kept()
        for kept_identity in chosen:
            kept_list = client.keep_output(kept_identity, keep=not release)
    if json:
        command.printer.print_json(kept_list)
    else:
        from riseml.cli.output.text import clean_text

        names = ", ".join(map(clean_text, kept_list["kept"]))
        command.printer.print_lines([f"Kept: {names}" if names else "No output is kept."])
