"""`results`: the results of the experiments of a set or a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.cli.commands.options import JsonOption

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext

IdsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", show_default=False, help="Default: all experiments of the project."),
]
SortOption = Annotated[
    str, typer.Option("--sort", metavar="NAME,...", show_default=False, help="Sort by columns; -NAME: largest first.")
]
WhereOption = Annotated[
    list[str] | None, typer.Option("--where", metavar="CONDITION", help="Only rows with 'lr<0.1'; repeatable.")
]
ColumnsOption = Annotated[
    str, typer.Option("--columns", metavar="NAME,...", show_default=False, help="Show these columns.")
]
RowsOption = Annotated[
    int | None,
    typer.Option("-n", "--rows", min=0, metavar="N", show_default=False, help="Show N rows; 0: all. Default: 100."),
]
ProjectOption = Annotated[
    str | None, typer.Option("--project", metavar="NAME", show_default=False, help="All experiments of a project.")
]
ScalingOption = Annotated[
    bool, typer.Option("--scaling", help="Show time, throughput, speed-up and efficiency by number of workers.")
]
RateOption = Annotated[
    str | None, typer.Option("--rate", metavar="METRIC", show_default=False, help="The throughput, for --scaling.")
]

_USUAL = 100  # rows of a table


@dataclass(frozen=True, slots=True)
class _Presentation:
    """How results are printed."""

    columns: str = ""  # names, separated by commas; empty: the usual ones
    scaling: bool = False
    rate: str | None = None
    csv: bool = False
    json: bool = False
    sort: str = ""  # for `scaling`; the server sorts the others


def show_results(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    identities: IdsArgument = None,
    *,
    sort: SortOption = "",
    where: WhereOption = None,
    columns: ColumnsOption = "",
    rows: RowsOption = None,
    project: ProjectOption = None,
    scaling: ScalingOption = False,
    rate: RateOption = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with all digits.")] = False,
    json: JsonOption = False,
) -> None:
    """Show results: parameters, metrics, state, time and host of experiments, the best one marked.

    A set that searches is ranked by its goal. Elsewhere --sort says what is good: --sort -accuracy ranks by the largest
    accuracy, --sort loss by the smallest loss. Columns are parameters, metrics (the best value where it is ranked, else
    the last one; accuracy.last, .best, .min, .max, .step and .count say which), id, rank, state, reason, time, host,
    workers, started and ended. A parameter or metric with the name of one of these is parameters.NAME or metrics.NAME.
    """
    command: CommandContext = context.obj
    output = _check_output(_Presentation(columns, scaling, rate, csv, json, sort))
    query: dict[str, object] = {"where": where or [], "sort": "" if scaling else sort}
    most = _USUAL if rows is None and not (csv or json or scaling) else rows
    if most:
        query["limit"] = most
    query |= _choose_experiments(command, identities or [], project)
    with command.connect() as client:
        results = client.get_results(query)
    _print_results(command, results, output)


def _check_output(output: _Presentation) -> _Presentation:
    if output.csv and (output.json or output.scaling):
        other = "--json" if output.json else "--scaling"
        raise UsageError(f"--csv and {other} exclude each other", "leave one of them out")
    if output.rate is not None and not output.scaling:
        raise UsageError("--rate is for --scaling", "add --scaling")
    return output


def _choose_experiments(command: CommandContext, identities: list[str], project: str | None) -> dict[str, object]:
    from riseml.base.names import parse_id

    if identities and project is not None:
        raise UsageError("--project and IDs exclude each other", "leave one of them out")
    if identities:
        return {"of": [str(parse_id(identity)) for identity in identities]}
    if project is None:
        from riseml.cli.arguments import find_own_project

        project = find_own_project(command)
    return {"project": project}


def _print_results(command: CommandContext, results: wire.ResultList, output: _Presentation) -> None:
    from riseml.cli.output.results_view import list_csv, list_results
    from riseml.results.column_names import split_names

    printer = command.printer
    chosen = list(split_names(output.columns))
    if output.scaling:
        _print_scaling(command, results, output)
    elif output.json:
        printer.print_json(results)
    else:
        printer.print_lines(list_csv(results, chosen) if output.csv else list_results(results, printer.style, chosen))


def _print_scaling(command: CommandContext, results: wire.ResultList, output: _Presentation) -> None:
    from riseml.cli.output.results_view import make_columns, make_row
    from riseml.cli.output.scaling_view import list_scaling, show_scaling
    from riseml.results.ranking import parse_sort
    from riseml.results.scaling import measure_scaling, sort_scaling

    scaling = measure_scaling(
        [make_row(experiment) for experiment in results["experiments"]], make_columns(results), output.rate
    )
    scaling = sort_scaling(scaling, parse_sort(output.sort))
    if output.json:
        command.printer.print_json(show_scaling(scaling))
    else:
        command.printer.print_lines(list_scaling(scaling, command.printer.style))
