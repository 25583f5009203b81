"""`results`: the results of the experiments of a set or a project."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, cast

import typer

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.cli.commands.options import JsonOption
from riseml.client.identities import check_identities, find_identity

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.cli.output.paper_table import PaperTable
    from riseml.client.server_client import Client

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
ArchivedOption = Annotated[bool, typer.Option("--archived", help="Show archived experiments, too.")]
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


class ResultFormat(Enum):
    """What results are printed as."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MD = "md"
    LATEX = "latex"


FormatOption = Annotated[
    ResultFormat | None,
    typer.Option(
        "--format", show_default=False, help="md and latex are tables for papers, csv and json have all digits."
    ),
]
DigitsOption = Annotated[
    int | None,
    typer.Option("--digits", min=1, max=17, metavar="N", show_default=False, help="Significant digits. Default: 6."),
]
GroupOption = Annotated[
    bool, typer.Option("--group", help="One row for each point: mean, deviation and interval over its seeds.")
]
AllOption = Annotated[
    bool, typer.Option("--all", help="Show all columns, also where all rows are the same, and .last, .min and .max.")
]
CompareOption = Annotated[
    bool, typer.Option("--compare", help="Whether two sets, or the points of two runs, differ: a t-test over seeds.")
]

_USUAL = 100  # rows of a table


@dataclass(frozen=True, slots=True)
class _Presentation:
    """How results are printed."""

    form: ResultFormat
    columns: str = ""  # names, separated by commas; empty: the usual ones
    scaling: bool = False
    rate: str | None = None
    digits: int | None = None  # None: the usual ones
    sort: str = ""  # for `scaling`; the server sorts the others
    group: bool = False
    compare: bool = False
    rows: int | None = None  # None: the usual number
    every: bool = False  # all columns


def show_results(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    identities: IdsArgument = None,
    *,
    sort: SortOption = "",
    where: WhereOption = None,
    archived: ArchivedOption = False,
    columns: ColumnsOption = "",
    rows: RowsOption = None,
    project: ProjectOption = None,
    group: GroupOption = False,
    compare: CompareOption = False,
    scaling: ScalingOption = False,
    rate: RateOption = None,
    form: FormatOption = None,
    digits: DigitsOption = None,
    csv: Annotated[bool, typer.Option("--csv", help="As --format csv.")] = False,
    every: AllOption = False,
    json: JsonOption = False,
) -> None:
    """Show results of experiments in a table, the best one marked.

    The table has parameters, metrics, state, time and host of each experiment.

    A set that searches is ranked by its goal. Elsewhere --sort says what is good: --sort -accuracy ranks by the largest
    accuracy, --sort loss by the smallest loss. Columns are parameters, metrics (the value that ranks, else the last
    one; accuracy.last, .best, .min, .max, .step and .count say which), id, rank, state, reason, time, host, workers,
    started, ended, name, tags, marks and note. A column in which all rows are the same is a line below the table,
    unless --all is given. A parameter or metric with the name of one of these is parameters.NAME or metrics.NAME.
    """
    command: CommandContext = context.obj
    chosen = [*([form] if form else []), *([ResultFormat.CSV] if csv else []), *([ResultFormat.JSON] if json else [])]
    output = _check_output(
        _Presentation(_choose_format(chosen), columns, scaling, rate, digits, sort, group, compare, rows, every)
    )
    query: dict[str, object] = {"where": where or [], "sort": "" if scaling else sort}
    query |= {"archived": "true"} if archived else {}
    most = _USUAL if rows is None and output.form is ResultFormat.TABLE and not scaling else rows
    if most:
        query["limit"] = most
    query |= _choose_project(command, identities or [], project)
    with command.connect() as client:
        query |= {"of": [find_identity(client, identity) for identity in identities]} if identities else {}
        if group or compare:
            _print_groups(command, client, query, output)
            return
        results = client.get_results(query)
    _print_results(command, results, output)


def _choose_format(chosen: list[ResultFormat]) -> ResultFormat:
    """Return the format that the options ask for.

    Raises:
        UsageError: they ask for several.
    """
    if len(set(chosen)) > 1:
        first, second, *_ = (f"--{form.value}" if form.value in ("csv", "json") else form.value for form in set(chosen))
        names = " and ".join(sorted([first, second]))
        raise UsageError(f"{names} exclude each other", "leave one of them out")
    return chosen[0] if chosen else ResultFormat.TABLE


def _check_output(output: _Presentation) -> _Presentation:
    if output.group and output.scaling:
        raise UsageError("--group and --scaling exclude each other", "leave one of them out")
    if output.group and "," in output.columns:
        raise UsageError("with --group, --columns names the one metric that is averaged", "name one")
    options = {"--columns": output.columns, "--group": output.group, "--scaling": output.scaling}
    for name, choice in (options | {"--compare": output.compare}).items():
        if output.every and choice:
            raise UsageError(f"--all and {name} exclude each other", "leave one of them out")
    if output.every and output.form is not ResultFormat.TABLE:
        raise UsageError(f"--all is for the table, and not for {output.form.value}", "leave --all out")
    if output.rate is not None and not output.scaling:
        raise UsageError("--rate is for --scaling", "add --scaling")
    if output.digits is not None and output.form in (ResultFormat.CSV, ResultFormat.JSON):
        raise UsageError(f"--digits is for tables, and {output.form.value} has all digits", "leave --digits out")
    return output


def _print_groups(command: CommandContext, client: Client, query: dict[str, object], output: _Presentation) -> None:
    from riseml.base.names import find_whole
    from riseml.cli.output.groups_view import list_group_csv, list_groups, make_group_table
    from riseml.cli.result_groups import check_compared, print_comparison

    names = [str(name) for name in cast("list[str]", query.get("of", []))]
    if output.compare:
        is_other = output.form not in (ResultFormat.TABLE, ResultFormat.JSON)
        form = {f"--format {output.form.value}": True} if is_other else {}
        check_compared(names, {"--group": output.group, "--scaling": output.scaling, "--digits": output.digits, **form})
        query["of"] = list(dict.fromkeys(map(find_whole, names)))  # all runs of their points
    query.pop("limit", None)
    column = {"column": output.columns} if output.columns else {}
    groups = client.get_groups({**query, **column})
    printer = command.printer
    match output.form:
        case _ if output.compare:
            print_comparison(command, groups, names, json=output.form is ResultFormat.JSON)
        case ResultFormat.JSON:
            printer.print_json(groups)
        case ResultFormat.TABLE:
            most = _USUAL if output.rows is None else output.rows or None
            printer.print_lines(list_groups(groups, printer.style, most, output.digits))
        case ResultFormat.CSV:
            printer.print_lines(list_group_csv(groups))
        case _:
            printer.print_lines(_list_paper_lines(make_group_table(groups, output.digits), output.form))


def _choose_project(command: CommandContext, identities: list[str], project: str | None) -> dict[str, object]:
    """Return the project whose experiments are meant; empty with IDs."""
    if identities and project is not None:
        raise UsageError("--project and IDs exclude each other", "leave one of them out")
    if identities:
        check_identities(identities)
        return {}
    if project is None:
        from riseml.cli.arguments import find_own_project

        project = find_own_project(command)
    return {"project": project}


def _print_results(command: CommandContext, results: wire.ResultList, output: _Presentation) -> None:
    from riseml.analysis.column_names import split_names
    from riseml.cli.output.results_view import list_csv, list_results, make_paper_table

    printer = command.printer
    names = list(split_names(output.columns))
    match output.form:
        case _ if output.scaling:
            _print_scaling(command, results, output)
        case ResultFormat.JSON:
            printer.print_json(results)
        case ResultFormat.TABLE:
            printer.print_lines(list_results(results, printer.style, names, output.digits, every=output.every))
        case ResultFormat.CSV:
            printer.print_lines(list_csv(results, names))
        case _:
            printer.print_lines(_list_paper_lines(make_paper_table(results, names, output.digits), output.form))
    if output.scaling or output.form not in (ResultFormat.TABLE, ResultFormat.JSON):
        printer.print_notes(results["notes"])


def _list_paper_lines(table: PaperTable, form: ResultFormat) -> list[str]:
    from riseml.cli.output.paper_table import list_latex, list_markdown

    return list_latex(table) if form is ResultFormat.LATEX else list_markdown(table)


def _print_scaling(command: CommandContext, results: wire.ResultList, output: _Presentation) -> None:
    from riseml.analysis.ranking import parse_sort
    from riseml.analysis.result_answers import make_columns, make_row
    from riseml.analysis.scaling import measure_scaling, sort_scaling
    from riseml.cli.output.scaling_view import list_scaling, list_scaling_csv, make_scaling_table, show_scaling

    printer = command.printer
    scaling = measure_scaling(
        [make_row(experiment) for experiment in results["experiments"]], make_columns(results), output.rate
    )
    scaling = sort_scaling(scaling, parse_sort(output.sort))
    match output.form:
        case ResultFormat.JSON:
            printer.print_json(show_scaling(scaling))
        case ResultFormat.TABLE:
            printer.print_lines(list_scaling(scaling, printer.style, output.digits))
        case ResultFormat.CSV:
            printer.print_lines(list_scaling_csv(scaling))
        case _:
            printer.print_lines(_list_paper_lines(make_scaling_table(scaling, output.digits), output.form))
