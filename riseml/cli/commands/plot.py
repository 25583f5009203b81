"""`plot`: learning curves, and a metric over a parameter, on the terminal or in a file."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import NotFound, Refused, UsageError
from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.options import JsonOption
from riseml.cli.commands.results import SortOption, WhereOption

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.cli.output.chart import Chart
    from riseml.client.server_client import Client

_CURVES = 10  # the most curves in one chart
_MOST_NAMES = 10  # of metrics in a note
_BANDS = ("range", "error")  # around the mean of a group


AgainstOption = Annotated[
    str | None,
    typer.Option("--against", metavar="PARAMETER", show_default=False, help="Plot over a parameter, not over steps."),
]
GroupOption = Annotated[
    bool, typer.Option("--group", help="One curve for each point: the mean over its seeds, with a band.")
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", show_default=False, help="One curve for each value of a parameter, or for each `tag`."
    ),
]
BandOption = Annotated[
    str | None,
    typer.Option("--band", metavar="KIND", show_default=False, help="With --by: range (the default) or error."),
]
SvgOption = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", show_default=False, help="Write an SVG file instead.")
]
PngOption = Annotated[
    Path | None,
    typer.Option("--png", metavar="FILE", show_default=False, help="Write a PNG file; needs riseml[plot]."),
]


def plot_metric(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    identity: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", show_default=False, help="An experiment or a set. Default: the project's last one."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Argument(
            metavar="METRIC", show_default=False, help="Default: what the set is ranked by, else the first one."
        ),
    ] = None,
    *,
    against: AgainstOption = None,
    group: GroupOption = False,
    by: ByOption = None,
    band: BandOption = None,
    where: WhereOption = None,
    sort: SortOption = "",
    svg: SvgOption = None,
    png: PngOption = None,
    json: JsonOption = False,
) -> None:
    """Plot a metric of an experiment, or of the experiments of a set.

    At most ten curves: the best ones where the set is ranked, else the first ones. With --against lr, one point for
    each experiment: its best value where the metric is ranked, else its last one. With --by lr, the mean of the
    experiments of each value, in a band from the least to the largest, or one standard error wide.
    """
    command: CommandContext = context.obj
    _check_kinds({"--group": group, "--against": against, "--by": by}, band)
    with command.connect() as client:
        chosen = choose_experiment_id(command, client, identity)
        query: dict[str, object] = {"of": [chosen], "where": where or [], "sort": sort}
        results = client.get_results(query)
        name = _choose_metric(results, metric)
        if group:
            chart = _make_group_curves(client, query, results, name)
        elif by is not None:
            chart = _make_mean_curves(client, {**query, "metric": name, "by": by}, band or _BANDS[0])
        else:
            chart = _make_scatter(results, name, against) if against else _make_curves(client, results, name)
    if metric is None and not json:
        command.printer.print_notes(_name_others(results, name, chosen))
    _show_chart(command, chart, svg=svg, png=png, json=json)


def _check_kinds(kinds: dict[str, object], band: str | None) -> None:
    chosen = [option for option, value in kinds.items() if value]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} exclude each other", f"leave {chosen[-1]} out")
    if kinds["--by"] == "":
        raise UsageError("--by names nothing", "`--by lr` groups by the parameter lr, `--by tag` by tags")
    if band is not None and not kinds["--by"]:
        raise UsageError("--band needs --by", "`--by lr --band error` says what is grouped")
    if band is not None and band not in _BANDS:
        raise UsageError(f"there is no band {band[:80]!r}", f"there are {' and '.join(_BANDS)}")


def _choose_metric(results: wire.ResultList, metric: str | None) -> str:
    metrics = results["metrics"]
    if not results["matched"]:
        raise NotFound(
            f"none of {results['total']} experiments meets the conditions", "leave --where out, or change it"
        )
    if not metrics:
        raise NotFound(
            "no metric was reported so far",
            "call `riseml.report(step=1, loss=0.5)` in the code, or find values in its lines by `metrics` below train",
        )
    if metric is None:
        objective = results["objective"]
        return objective["metric"] if objective else metrics[0]
    if metric not in metrics:
        raise NotFound(f"no metric {metric[:80]!r} was reported", f"there are {', '.join(metrics)}")
    return metric


def _name_others(results: wire.ResultList, drawn: str, identity: str) -> list[str]:
    """Return a note with the metrics that are not drawn."""
    further = [name for name in results["metrics"] if name != drawn]
    if not further:
        return []
    more = f" and {len(further) - _MOST_NAMES} more" if len(further) > _MOST_NAMES else ""
    command = f"riseml plot {identity} {shlex.quote(further[0])}"
    return [f"also reported: {', '.join(further[:_MOST_NAMES])}{more}; `{command}` draws another one"]


def _make_curves(client: Client, results: wire.ResultList, metric: str) -> Chart:
    from riseml.cli.output.chart import make_curves

    every = [
        experiment
        for experiment in results["experiments"]
        if any(each["name"] == metric for each in experiment["metrics"])
    ]
    best = results["best"]["id"] if results["best"] else None
    pairs = [(experiment, client.get_metric_history(experiment["id"], metric)) for experiment in every[:_CURVES]]
    chart = make_curves(metric, pairs, best)
    if len(every) <= _CURVES:
        return chart
    which = "best" if best else "first"
    return replace(chart, note=f"The {which} {_CURVES} of {len(every):,} experiments; --where and --sort choose others")


def _make_group_curves(client: Client, query: dict[str, object], results: wire.ResultList, metric: str) -> Chart:
    from riseml.analysis.result_answers import make_columns
    from riseml.cli.output.group_curves import make_group_curves

    groups = client.get_groups({**query, "column": make_columns(results).name_metric(metric)})
    reporting = {
        experiment["id"]
        for experiment in results["experiments"]
        if any(reported["name"] == metric for reported in experiment["metrics"])
    }
    drawn = [group for group in groups["groups"] if reporting.intersection(group["ids"])]
    histories = [
        (group, [client.get_metric_history(name, metric) for name in group["ids"] if name in reporting])
        for group in drawn[:_CURVES]
    ]
    chart = make_group_curves(metric, histories, groups["parameters"])
    if len(drawn) <= _CURVES:
        return chart
    which = "best" if groups["objective"] else "first"
    return replace(chart, note=f"{chart.note}. The {which} {_CURVES} of {len(drawn):,} points")


def _make_mean_curves(client: Client, query: dict[str, object], band: str) -> Chart:
    from riseml.cli.output.group_curves import make_mean_curves

    return make_mean_curves(client.get_group_curves(query), band, _CURVES)


def _make_scatter(results: wire.ResultList, metric: str, parameter: str) -> Chart:
    from riseml.analysis.result_answers import make_columns, make_row
    from riseml.cli.output.chart import make_scatter

    parameters = [*results["parameters"], *results["same"]]
    if parameter not in parameters:
        raise UsageError(f"there is no parameter {parameter[:80]!r}", f"there are {', '.join(parameters) or 'none'}")
    columns = make_columns(results)
    read = columns.find_reader(columns.name_metric(metric))
    values = {
        experiment["id"]: (experiment["parameters"].get(parameter), read(make_row(experiment)))
        for experiment in results["experiments"]
    }
    points = {
        name: (text, value) for name, (text, value) in values.items() if text is not None and isinstance(value, float)
    }
    best = results["best"]["id"] if results["best"] else ""
    marked = (best, points[best]) if best in points else None
    return make_scatter(metric, parameter, list(points.values()), marked)


def _show_chart(command: CommandContext, chart: Chart, *, svg: Path | None, png: Path | None, json: bool) -> None:
    from riseml.cli.output.chart import has_points

    if not has_points(chart):
        raise NotFound(f"{chart.title} has no finite value to draw", "`riseml results` shows what was reported")
    files = [(path, write) for path, write in ((svg, _write_svg), (png, _write_png)) if path is not None]
    for path, write in files:
        try:
            write(chart, command.folder / path)
        except OSError as error:
            raise Refused(f"cannot write {path}: {error.strerror}", "check the folder and its permissions") from None
    if json:
        command.printer.print_json(_show_json(chart, [str(path) for path, _ in files]))
    elif files:
        command.printer.print_lines([f"Wrote {path}" for path, _ in files])
        command.printer.print_notes([chart.note] if chart.note else [])
    else:
        from riseml.cli.output.terminal_plot import draw_chart

        printer = command.printer
        if any(series.band for series in chart.series):
            from riseml.cli.output.group_curves import describe_without_bands

            chart = replace(chart, note=describe_without_bands(chart.note))
        encoding = (getattr(printer.out, "encoding", None) or "utf-8").lower()
        command.printer.print_lines(draw_chart(chart, printer.style, unicode=encoding.startswith("utf")))


def _write_svg(chart: Chart, path: Path) -> None:
    from riseml.cli.output.svg_plot import draw_svg

    path.write_text(draw_svg(chart), encoding="utf-8")


def _write_png(chart: Chart, path: Path) -> None:
    from riseml.cli.output.png_plot import write_png

    write_png(chart, path)


def _show_json(chart: Chart, files: list[str]) -> wire.PlotView:
    return {
        "title": chart.title,
        "x": chart.x_title,
        "y": chart.y_title,
        "series": [
            {
                "label": series.label,
                "points": [[x, y] for x, y in series.points],
                "band": [[x, low, high] for x, low, high in series.band],
            }
            for series in chart.series
        ],
        "files": files,
    }
