"""`riseml monitor ID --since TIME`: what the jobs of an experiment have used."""

from __future__ import annotations

from riseml.base.errors import UsageError
from riseml.cli.arguments import choose_experiment_id
from riseml.cli.context import CommandContext


def print_past_use(command: CommandContext, identity: str | None, since: str, *, json: bool) -> None:
    """Print what the jobs of an experiment have used since a moment (RFC 3339).

    Raises:
        UsageError: there is no ID, or `--gpu` was given.
    """
    from riseml.cli.output.history_view import list_past_use

    if identity is None:
        raise UsageError("--since needs one experiment, and no --gpu", "name it: `riseml monitor 4 --since 2h`")
    with command.connect() as client:
        chosen = choose_experiment_id(command, client, identity)
        history = client.get_sample_history(chosen, {"since": since})
        if json:
            command.printer.print_json(history)
            return
        lines = list_past_use(history, command.printer.style, bars=command.printer.draws_bars)
        if not lines:
            ended = client.get_experiment(chosen)["ended_at"]
            when = f"it ended at {ended}" if ended else "`riseml status` shows whether its jobs run"
            lines = [f"Nothing is known of {chosen} since {since}; {when}."]
        command.printer.print_lines(lines)
