"""How an experiment ended, as a card below its log: state, time, metrics, output, and what to type next. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from riseml.base.names import BUILD
from riseml.base.records import dataclass
from riseml.cli.output.log_lines import describe_result, list_advice, list_causes, list_last_lines, list_places
from riseml.cli.output.style import Style, paint, paint_state
from riseml.cli.output.text import clean_text, format_metric, format_parameters
from riseml.cli.output.widths import measure_width, pad_to_width, shorten_to_width, wrap_to_width

if TYPE_CHECKING:
    from riseml import wire

_MOST_METRICS = 5
_WIDEST_TITLE = 24  # columns of the terminal
_NARROWEST = 20  # columns of the terminal that a folded sentence has at least
_SENTENCES = ("Advice", "Failed")
_TAIL = "--tail 50"


@dataclass(frozen=True, slots=True)
class ShownLog:
    """What of the end the log above the card has shown."""

    has_said: Callable[[str], bool]  # whether a line of a state had this message
    has_just_printed: Callable[[str, int], bool]  # whether so many last lines of the job with this ID are in view


def build_end_card(end: wire.EndEntry, experiment: wire.ExperimentView, log: ShownLog, style: Style) -> list[str]:
    """Return the lines of the card, an empty one first.

    A message that the log has shown does not come again, nor do the last lines of a job that nothing follows.

    Example:
        >>> build_end_card(end, experiment, log, Style())
        ['', 'Experiment 4 FINISHED after 2m00s', '  accuracy  0.98', '  Output    /home/paul/...', ...]
    """
    cause = f"{experiment['id']}.{end['cause']}" if end["cause"] else ""
    message = "" if log.has_said(end["message"]) else end["message"]
    result = clean_text(describe_result({**end, "message": message}, experiment))
    lines = ["", paint_state(end["state"], result, colour=style.colour)]
    last_lines = list_last_lines(experiment)
    if last_lines and not log.has_just_printed(cause, len(last_lines) - 1):  # without the title
        lines += [f"  {line}" for line in last_lines]
    rows = [
        *_split_titles(list_causes(experiment, log.has_said)),
        *_split_titles(list_advice(experiment)),
        *_list_metrics(end, experiment),
        *list_places(experiment),
        *_list_next(end, experiment),
    ]
    rows = [(shorten_to_width(clean_text(title), _WIDEST_TITLE), clean_text(text)) for title, text in rows]
    width = max((measure_width(title) for title, _ in rows), default=0)
    for title, text in rows:
        first, *more = _fold_sentence(title, text, width, style)
        lines.append(f"  {paint(pad_to_width(title, width), '1', colour=style.colour)}  {first}".rstrip())
        lines += [f"{' ' * (width + 4)}{line}" for line in more]
    return lines


def _split_titles(lines: list[str]) -> list[tuple[str, str]]:
    """Return `Title: text` lines as pairs."""
    return [(title, text) for title, _, text in (line.partition(": ") for line in lines)]


def _fold_sentence(title: str, text: str, indent: int, style: Style) -> list[str]:
    """Return advice in lines that fit the terminal. Paths and commands stay whole, so that users can copy them."""
    room = None if style.width is None else style.width - indent - 4
    return [text] if room is None or title not in _SENTENCES else wrap_to_width(text, max(room, _NARROWEST))


def _list_metrics(end: wire.EndEntry, experiment: wire.ExperimentView) -> list[tuple[str, str]]:
    """Return each metric with its last value and the range of all; of a set, the best experiment of its search."""
    search = experiment.get("search")
    best = search["best"] if search else None
    if best is not None and f"best {best['id']} " in end["message"]:
        return []
    if search is not None and best is not None:
        parameters = f" ({format_parameters(best['parameters'])})" if best["parameters"] else ""
        return [("Best", f"{best['id']} {search['metric']} {format_metric(best['value'])}{parameters}")]
    metrics = experiment.get("metrics", ())  # a server of an earlier version sends none
    rows = [(metric["name"], _describe_metric(metric)) for metric in metrics[:_MOST_METRICS]]
    more = len(metrics) - len(rows)
    return [*rows, *([("", f"and {more} more metrics")] if more > 0 else [])]


def _describe_metric(metric: wire.MetricView) -> str:
    """Return `0.98 (0.12 to 0.985)`: the last value, and the smallest and largest one where they differ."""
    last = format_metric(metric["last"])
    least = format_metric(metric["min"])
    most = format_metric(metric["max"])
    return last if least == most else f"{last} ({least} to {most})"


def _list_next(end: wire.EndEntry, experiment: wire.ExperimentView) -> list[tuple[str, str]]:
    """Return two commands that fit this end; none for a TensorBoard or a notebook."""
    if experiment["type"] not in ("experiment", "set"):
        return []
    first, second = _choose_commands(end, experiment)
    return [("Next", f"riseml {first}"), ("", f"riseml {second}")]


def _choose_commands(end: wire.EndEntry, experiment: wire.ExperimentView) -> tuple[str, str]:
    name = experiment["id"]
    is_set = experiment["type"] == "set"
    singles = experiment["experiments"] if is_set else [experiment]
    has_metrics = any(single.get("metrics") for single in singles)
    if end["state"] == "FAILED":
        log = f"logs {name}.{end['cause']} {_TAIL}" if end["cause"] else f"logs {name} {_TAIL}"
        if is_set:
            return log, f"results {name}"
        return log, "train" if end["cause"] == BUILD else f"rerun {name}"
    if end["state"] == "KILLED":
        return f"logs {name} {_TAIL}", f"results {name}" if has_metrics else f"rerun {name}"
    if has_metrics:
        return f"plot {name}", f"results {name}"
    return (f"results {name}", f"status {name}") if is_set else (f"ls output://{name}", f"show {name}")
