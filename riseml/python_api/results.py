"""`riseml.results(144)` in Python: results as a DataFrame of pandas, which users install themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from riseml.analysis.numbers import read_column
from riseml.base.amounts import count_noun
from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.python_api.errors import add_hints
from riseml.python_api.program import Program

if TYPE_CHECKING:
    from riseml import wire
    from riseml.analysis.rows import Value

_MOMENTS = frozenset({"started", "ended"})


@dataclass(frozen=True, slots=True)
class Results:
    """The results of experiments, as the server answered them: a `ResultList` of docs/json.md."""

    answer: wire.ResultList

    def __len__(self) -> int:
        """Return the number of experiments."""
        return len(self.answer["experiments"])

    def __repr__(self) -> str:
        """Return what a notebook shows: how many experiments there are, and what makes a table of them."""
        return f"<{count_noun(len(self), 'result')}; to_pandas() makes a DataFrame>"

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each experiment, and the columns of `riseml results --csv`.

        IDs are texts: 1.1 and 1.10 are two. Metrics are floats, `time` is in seconds, `started` and `ended` are
        moments in UTC. A parameter is a column of numbers where all its texts are numbers that lose no digit; else it
        has the texts as they were written.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("to_pandas needs pandas: pip install pandas", name="pandas") from error
        from riseml.analysis.result_answers import list_all_names, make_columns, make_row

        columns = make_columns(self.answer)
        rows = [make_row(experiment) for experiment in self.answer["experiments"]]
        series: dict[str, Any] = {}
        for name in list_all_names(self.answer, columns):
            if name == "rank":
                values: list[Value] = [experiment["rank"] for experiment in self.answer["experiments"]]
            else:
                values = list(map(columns.find_reader(name), rows))
            kind, _, part = columns.resolve(name)
            series[name] = _make_series(pandas, (kind, name, part), values)
        return pandas.DataFrame(series)


def load_results(
    *identities: int | str,
    project: str | None = None,
    where: str | Iterable[str] = (),
    sort: str = "",
    program: Program | None = None,
) -> Results:
    """Return the results of experiments and sets, as `riseml results` does; start the user's own server if need be.

    Example:
        riseml.results(144).to_pandas()
        riseml.results("144.3", "150", where="lr<0.1")

    Args:
        identities: numbers, or texts such as "144.3"; none: all of `project`.
        project: its name, instead of identities.
        where: conditions, as `--where` takes them.
        sort: columns, as `--sort` takes them.
        program: the caller; None: this process.

    Raises:
        RisemlError: as the command; its `hint` says what to do next.
    """
    from riseml.client.identities import find_identity

    query: dict[str, object] = {"where": [where] if isinstance(where, str) else list(where), "sort": sort}
    with add_hints():
        query |= _choose_experiments(identities, project)
        with (program or Program()).connect() as client:
            named = cast("list[str]", query.get("of", []))
            of = {"of": [find_identity(client, identity) for identity in named]} if named else {}
            return Results(client.get_results(query | of))


def _choose_experiments(identities: Sequence[object], project: str | None) -> dict[str, object]:
    if bool(identities) == (project is not None):
        raise UsageError("results takes IDs, or project=NAME", 'write results(144), or results(project="toaster")')
    if project is not None:
        return {"project": project}
    for identity in identities:
        if isinstance(identity, bool) or not isinstance(identity, int | str):
            hint = f'write results("{identity}"): as numbers, 144.1 and 144.10 are one'
            raise UsageError(f"an ID is a whole number or a text, not {identity!r}", hint)
    from riseml.client.identities import check_identities

    check_identities(map(str, identities))
    return {"of": [str(identity) for identity in identities]}


def _make_series(pandas: Any, column: tuple[str, str, str], values: list[Value]) -> Any:
    """Return the values of a column with the type that its kind has: (`fixed`, ...), its name, the part of a metric."""
    kind, name, part = column
    if kind == "metrics":
        return pandas.Series(values, dtype="Int64" if part == "step" else "float64")
    if kind == "parameters":
        numbers = read_column([None if value is None else str(value) for value in values])
        if numbers is not None:
            missing = None in numbers.values
            return pandas.Series(
                numbers.values, dtype=("Int64" if missing else "int64") if numbers.whole else "float64"
            )
        return pandas.Series(values, dtype="object")
    if name in _MOMENTS:
        return pandas.to_datetime(pandas.Series(values, dtype="object"), utc=True)
    if name in ("rank", "workers", "generation"):
        return pandas.Series([None if value is None else int(value) for value in values], dtype="Int64")
    return pandas.Series(values, dtype="float64" if name == "time" else "object")
