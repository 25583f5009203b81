"""The table of experiments: the values of `riseml results`, its groups, its pages, and its CSV."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from riseml.base.errors import NotFound, UsageError
from riseml.base.names import JobName
from riseml.base.settings import Settings
from riseml.base.states import State
from riseml.model import Frame, JobKey
from riseml.server.api.views.experiment_table import TableQuery, list_table_csv, read_table
from riseml.server.api.views.results import ResultQuery, read_results
from riseml.server.app import make_application
from riseml.server.services import Services
from tests.support.callers import ME
from tests.support.rig import single
from tests.unit.server.api.views.test_results import NOW, add, finish

FORMULA = "=cmd|' /C calc'!A0"
METRICS: tuple[dict[str, tuple[float, ...]], ...] = ({"loss": (0.5, 0.25)}, {"loss": (0.75, 0.5)}, {"lr": (3.0,)}, {})


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A server with a set of two, 1, an experiment of another project whose metric has the name of a parameter, 2, and
    one whose parameter is a formula, 3. The tests only read it."""
    home: Path = tmp_path_factory.mktemp("table")
    made = make_application(Settings(home, home / "output", home / "data", executor="process"), threading.Event())
    add(made.services, single("t {{lr}}", parameters={"lr": [0.1, 0.01]}))
    add(made.services, single("t {{lr}}", parameters={"lr": 1}).replace("toaster", "other"))
    add(made.services, single("t", parameters={"evil": FORMULA}))
    for identity, metrics in enumerate(METRICS, 1):
        finish(made.services, identity, State.FINISHED if identity < 4 else State.CREATED)
        for name, values in metrics.items():
            lines = [f'riseml.report {{"step": {at}, "{name}": {value}}}\n' for at, value in enumerate(values)]
            frames = [Frame("2026-08-31T07:23:46.1Z", 1, line.encode()) for line in lines]
            made.services.stores.logs.append_frames(JobKey(identity, JobName("train"), 1), frames)
    yield made.services
    made.database.close()


def ask(services: Services, *names: str, **options: Any) -> Any:
    fields = ("columns", "group", "opened", "offset", "limit", "available", "first")
    shape = {name: options.pop(name) for name in fields if name in options}
    query = ResultQuery(names, everything=True, columns=shape.get("group", ()), **options)
    return read_table(TableQuery(query, **shape), ME, services.stores, NOW)


def test_cells_are_those_of_the_results(services: Services) -> None:
    table = ask(services, "1", columns=("rank", "lr", "loss", "loss.max", "host", "time"), sort="loss")
    results = read_results(ResultQuery(("1",), sort="loss"), ME, services.stores, NOW)["experiments"]
    assert [line["id"] for line in table["rows"]] == [one["id"] for one in results]
    assert [line["cells"] for line in table["rows"]] == [
        [1.0, "0.1", 0.25, 0.5, "gpu1", 100.0],
        [2.0, "0.01", 0.5, 0.75, "gpu1", 200.0],
    ]
    assert [one["value"] for one in results] == [0.25, 0.5]


def test_all_projects_in_pages(services: Services) -> None:
    names = [line["id"] for line in ask(services, sort="-id")["rows"]]
    assert names == ["3", "2", "1.2", "1.1"]
    page = ask(services, sort="-id", offset=1, limit=2)
    assert [line["id"] for line in page["rows"]] == ["2", "1.2"]
    assert (page["lines"], page["matched"]) == (4, 4)
    assert [line["id"] for line in ask(services, project="other")["rows"]] == ["2"]
    assert [line["id"] for line in ask(services, sort="-id", newest=2)["rows"]] == ["3", "2"]
    assert ask(services, where=("lr<1",), sort="project,-lr")["matched"] == 2


def test_an_empty_table_is_no_fault(services: Services) -> None:
    assert ask(services, user="somebody")["rows"] == []
    with pytest.raises(NotFound, match="there is no experiment 9"):
        ask(services, "9")
    with pytest.raises(NotFound, match="project none has no experiment"):
        read_results(ResultQuery(project="none"), ME, services.stores, NOW)


def test_a_group_has_a_count_means_and_its_experiments(services: Services) -> None:
    table = ask(services, sort="id", group=("set",), columns=("id", "set", "loss", "state", "lr"))
    first, *others = table["rows"]
    assert (first["id"], first["count"], first["state"]) == ("", 2, "FINISHED")
    assert first["cells"] == ["2 values", "1", 0.375, "FINISHED", "2 values"]
    assert first["mixed"] == [0, 2, 4]
    assert [line["id"] for line in others] == ["2", "3"]
    opened = ask(services, sort="id", group=("set",), opened=(first["group"],), columns=("loss",))
    assert [(line["id"], line["inside"]) for line in opened["rows"]] == [
        ("", False),
        ("1.1", True),
        ("1.2", True),
        ("2", False),
        ("3", False),
    ]
    assert [line["count"] for line in ask(services, sort="id", group=("host",))["rows"]] == [3, 1]


def test_the_lines_of_sets_and_the_usual_columns(services: Services) -> None:
    table = ask(services, sort="id", group=("set",), available=True, first=("state", "lr"))
    assert table["columns"][:4] == ["state", "lr", "id", "loss"]
    assert [(line["state"], line["ended"], line["may_change"]) for line in table["rows"]] == [
        ("FINISHED", 2, True),
        ("FINISHED", 1, True),
        ("CREATED", 0, True),
    ]
    assert {"project", "created", "latest"} <= set(table["columns"])
    only_ended = ask(services, "1", sort="loss", available=True)
    assert only_ended["columns"][:4] == ["rank", "id", "state", "loss"]
    assert not {"project", "progress", "latest"} & set(only_ended["columns"])


@pytest.mark.parametrize(
    ("words", "found"),
    [(("other",), ["2"]), (("LR=0.1",), ["1.1"]), (("-finished",), ["3"]), (("toaster", "gpu1", "-1.2"), ["1.1"])],
)
def test_words_are_sought_everywhere(services: Services, words: tuple[str, ...], found: list[str]) -> None:
    assert [line["id"] for line in ask(services, sort="id", words=words)["rows"]] == found


def test_a_metric_and_a_parameter_of_one_name_are_two_columns(services: Services) -> None:
    table = ask(services, "2", columns=("lr", "metrics.lr"), available=True)
    assert table["rows"][0]["cells"] == ["1", 3.0]
    kinds = {column["name"]: column["kind"] for column in table["available"]}
    assert (kinds["lr"], kinds["metrics.lr"], kinds["lr.min"]) == ("parameters", "metrics", "metrics")
    differing = {column["name"] for column in ask(services, "1", available=True)["available"] if column["differs"]}
    assert {"lr", "loss", "loss.min", "id"} <= differing
    assert not differing & {"project", "state", "lr.step"}


def test_a_column_that_no_experiment_has_is_empty_and_said(services: Services) -> None:
    table = ask(services, columns=("id", "los"))
    assert [line["cells"][1] for line in table["rows"]] == [None] * 4
    assert table["notes"] == ["there is no column 'los': did you mean 'loss'?"]


@pytest.mark.parametrize("options", [{"sort": "los"}, {"where": ("los<1",)}, {"group": ("los",)}])
def test_an_order_a_condition_and_a_group_need_a_column(services: Services, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="there is no column 'los'"):
        ask(services, **options)


def test_csv_has_what_is_shown_and_no_formula(services: Services) -> None:
    query = ResultQuery(everything=True, sort="id")
    columns = ("id", "evil", "loss")
    lines = list_table_csv(TableQuery(query, columns, limit=1), ME, services.stores, NOW)
    assert lines == ["id,evil,loss", "1.1,,0.25", "1.2,,0.5", "2,,", "3,'=cmd|' /C calc'!A0,"]
    grouped = list_table_csv(TableQuery(query, columns, ("set",)), ME, services.stores, NOW)
    assert grouped[:3] == ["id,evil,loss,experiments", "2 values,,0.375,2", "2,,,"]
