"""Print an experiment's log to its end, as `train` and `logs` do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from riseml.base.errors import ExperimentFailed, Interrupted, Unreachable
from riseml.base.records import dataclass
from riseml.base.settings import LogForm
from riseml.cli.context import CommandContext, Exit
from riseml.cli.output.brief_log import BriefFormatter
from riseml.cli.output.log_lines import LogFormatter, describe_end, get_id_width, is_job_id, is_start_of_tensorboard
from riseml.cli.output.style import ENDED_STATES, paint_state
from riseml.cli.output.text import clean_text
from riseml.client.server_client import LogQuery
from riseml.submission.reconnection import make_reconnect

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.printer import Printer
    from riseml.client.server_client import Client

_COPY_INTERVAL = 0.5  # seconds between two requests about a copy
_EXIT_CODES = {"FINISHED": 0, "FAILED": ExperimentFailed.exit_code, "KILLED": Interrupted.exit_code}


@dataclass(frozen=True, slots=True)
class LogDisplay:
    """How a log is printed."""

    json: bool = False
    long: bool = False  # in RiseML's form, and with a table of all jobs at the end


def follow_log(
    context: CommandContext,
    client: Client,
    experiment: wire.ExperimentView,
    display: LogDisplay,
    query: LogQuery | None = None,
) -> wire.EndEntry | None:
    """Print the log and return its last entry; None if the query does not follow the log to its end.

    Raises:
        Exit: the user pressed Ctrl-C, which leaves the log and does not stop the experiment.
        Unreachable: the server did not answer for too long.
    """
    printer = context.printer
    query = replace(query or LogQuery(), batch=not display.json, reports=display.json)
    formatter = _make_formatter(context, experiment, display, query)
    entries = client.stream_log(experiment["id"], query, make_reconnect(context, client))
    end: wire.EndEntry | None = None
    try:
        is_shown = query.follow and not display.json
        with open_footer(context, client, experiment["id"], is_shown=is_shown) as note_entry:
            for entry in entries:
                note_entry(entry)
                if display.json:
                    printer.print_json(entry)
                if entry["type"] == "end":
                    end = entry
                elif not display.json and entry["type"] != "ping" and entry["type"] != "report":
                    printer.print_clean_lines(formatter.format_entry(entry))
                    if query.follow and is_start_of_tensorboard(entry):
                        _print_tensorboard(context, client, experiment["id"], entry["id"])
        if end is not None and not display.json:
            _print_end(context, client, end, display, formatter)
    except KeyboardInterrupt:
        _say_it_continues(printer, experiment["id"])
        raise Exit(Interrupted.exit_code) from None
    except Unreachable as error:
        raise Unreachable(
            f"the log of experiment {experiment['id']} stopped, the experiment did not: {error.message}", error.hint
        ) from error
    return end


def _print_tensorboard(context: CommandContext, client: Client, identity: str, job: str) -> None:
    """Print where the TensorBoard of an experiment is, once it runs. Of a set, the first one stands for all."""
    from riseml.cli.output.experiment_views import describe_tensorboard

    own = job.rpartition(".")[0]
    if own == identity or job.startswith(f"{identity}.1."):
        reconnect = make_reconnect(context, client)
        experiment = client.ask_until_answered(lambda: client.get_experiment(identity), reconnect)
        if experiment["state"] not in ENDED_STATES:  # else it is a log that is read again
            context.printer.print_lines([clean_text(f"TensorBoard: {describe_tensorboard(experiment)}")])


def _say_it_continues(printer: Printer, identity: str) -> None:
    printer.say(
        "",
        f"Experiment {identity} will continue in background."
        f" Type `riseml logs {identity}` to connect to the log stream again.",
    )


@contextmanager
def open_footer(
    context: CommandContext, client: Client, identity: str, *, is_shown: bool = True
) -> Iterator[Callable[[wire.Entry], None]]:
    """On a terminal, show below the log what the experiment waits for. Give the receiver of the log's entries."""
    if not context.printer.live or not is_shown or is_job_id(identity):
        yield lambda _: None
        return
    from time import monotonic

    from riseml.cli.progress_footer import ProgressFooter

    with ProgressFooter(context.printer, identity, client.address, monotonic) as footer:
        yield footer.note_entry


def get_exit_code(end: wire.EndEntry | None) -> int:
    """Return the exit code of a command that followed an experiment to this end."""
    return 0 if end is None else _EXIT_CODES.get(end["state"], ExperimentFailed.exit_code)


def _await_copy(context: CommandContext, client: Client, identity: str) -> wire.ExperimentView:
    """Wait until the last copy of an ended experiment's output is in its store, or is given up; return the
    experiment."""
    reconnect = make_reconnect(context, client)
    is_told = False
    while True:
        experiment = client.ask_until_answered(lambda: client.get_experiment(identity), reconnect)
        saved = experiment.get("saved")  # a server of an earlier version saves nothing
        if saved is None or saved["state"] != "saving" or is_job_id(identity):
            return experiment
        if not is_told:
            context.printer.say(f"Saving the output of {identity} in {saved['place']}.")
            is_told = True
        context.wait(_COPY_INTERVAL)


def _make_formatter(
    context: CommandContext, experiment: wire.ExperimentView, display: LogDisplay, query: LogQuery
) -> LogFormatter | BriefFormatter:
    """Return what turns entries into lines, in the form that the user chose."""
    colour = context.printer.colour
    if display.long or context.settings().log_form is LogForm.CLASSIC:
        return LogFormatter(colour, get_id_width(experiment))
    return BriefFormatter(experiment, ends=query.follow, colour=colour)


def _print_end(
    context: CommandContext,
    client: Client,
    end: wire.EndEntry,
    display: LogDisplay,
    formatter: LogFormatter | BriefFormatter,
) -> None:
    from riseml.cli.output.end_card import ShownLog, build_end_card
    from riseml.cli.output.experiment_views import list_experiment

    style = context.printer.style
    experiment = _await_copy(context, client, end["id"])
    if isinstance(formatter, BriefFormatter):
        log = ShownLog(formatter.has_said, formatter.has_just_printed)
        context.printer.print_lines(build_end_card(end, experiment, log, style))
        return
    first, *more = describe_end(end, experiment)
    context.printer.print_lines([paint_state(end["state"], first, colour=style.colour)])
    context.printer.print_lines(list_experiment(experiment, context.now(), style, long=True) if display.long else more)
