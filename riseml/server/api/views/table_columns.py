"""The columns that a table of experiments can have, and those that it has where nobody has chosen any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from riseml import wire
from riseml.analysis.rows import AFTER_ALL, FIXED, PARTS, Columns, Reader, ResultRow, list_metrics, list_parameters
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, State
from riseml.server.api.views.results import RUN_COLUMNS

LIVE = ("progress", "latest")
"""Columns about what runs: how far it is; and that with the last line of its log, or what its search does. No parameter
or metric of the same name gives way to them."""

_MOST_PARAMETERS = 12
_MOST_METRICS = 6


@dataclass(frozen=True, slots=True)
class UsualTable:
    """What decides about the columns of a table whose columns nobody has chosen."""

    ranking: tuple[str, ...]  # metrics that rank
    of_set: bool  # it is the table of one set, not that of all experiments


def list_available(rows: Sequence[ResultRow], columns: Columns, ranks: Mapping[str, int]) -> list[wire.TableColumn]:
    """Return every column that the table of these experiments can have."""
    runs = any(State(row.state) not in TERMINAL for row in rows)
    own: list[wire.TableColumn] = [
        {"name": "rank", "kind": "own", "part": "", "differs": len(set(ranks.values())) > 1},
        *(
            _describe_own(name, differs=name in RUN_COLUMNS or _differs(rows, read))
            for name, read in (*FIXED.items(), *AFTER_ALL.items())
            if columns.resolve(name)[0] == "fixed"
        ),
        *(_describe_own(name, differs=runs) for name in LIVE if not columns.resolve(name)[0]),
    ]
    return [*own, *_list_parameters(rows, columns), *_list_metrics(rows, columns)]


def _describe_own(name: str, *, differs: bool) -> wire.TableColumn:
    return {"name": name, "kind": "own", "part": "", "differs": differs}


def _list_parameters(rows: Sequence[ResultRow], columns: Columns) -> Iterator[wire.TableColumn]:
    for name in list_parameters(rows):
        column = columns.write_parameter(name)
        differs = _differs(rows, columns.find_reader(column))
        yield {"name": column, "kind": "parameters", "part": "", "differs": differs}


def _list_metrics(rows: Sequence[ResultRow], columns: Columns) -> Iterator[wire.TableColumn]:
    for metric in list_metrics(rows):
        for part in ("", *(part for part in PARTS if part != "best" or metric in columns.goals)):
            column = columns.write_metric(metric, part)
            differs = _differs(rows, columns.find_reader(column))
            yield {"name": column, "kind": "metrics", "part": part, "differs": differs}


def _differs(rows: Sequence[ResultRow], read: Reader) -> bool:
    """Return True when two rows have different values; most columns show it in their first rows."""
    values = map(read, rows)
    first = next(values, None)
    return any(value != first for value in values)


def choose_usual(available: Sequence[wire.TableColumn], usual: UsualTable) -> list[str]:
    """Return the columns of a table whose columns nobody has chosen: those that differ.

    In the table of a set, the last value of a metric that ranks is beside the one that ranks.
    """
    differing = {column["name"] for column in available if column["differs"]}
    metrics = sorted(
        _list_values(available, usual.ranking if usual.of_set else ()),
        key=lambda name: not _is_ranking(name, usual.ranking),
    )
    parameters = [column["name"] for column in available if column["kind"] == "parameters" and column["differs"]]

    def pick(*names: str) -> list[str]:
        return [name for name in names if name in differing]

    heads = [*(["rank"] if usual.ranking and usual.of_set else []), "id", *pick("marks", "name"), "state"]
    return [
        *heads,
        *(pick("generation", "parent") if usual.of_set else []),
        *metrics[:_MOST_METRICS],
        *([] if usual.of_set else pick("latest")),
        *parameters[:_MOST_PARAMETERS],
        *pick("tags"),
        *([] if usual.of_set else [*pick("user", "type"), "project", "created"]),
        *("time", "host"),
    ]


def _list_values(available: Sequence[wire.TableColumn], ranking: Sequence[str]) -> Iterator[str]:
    """Yield each metric, and the last value of one that ranks."""
    for place, column in enumerate(available):
        if column["kind"] != "metrics" or column["part"]:
            continue
        yield column["name"]
        if column["name"] in ranking:
            yield next(later["name"] for later in available[place + 1 :] if later["part"] == "last")


def _is_ranking(name: str, ranking: Sequence[str]) -> bool:
    return any(name in (metric, f"{metric}.last") for metric in ranking)
