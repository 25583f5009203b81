"""`riseml.results(144).to_pandas()`, with the fake server: which types the columns of the DataFrame have."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pandas
import pytest

import riseml as package
from riseml.base.errors import NotFound, UsageError
from riseml.python_api.results import Results, load_results
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import NOW, FakeServer
from tests.unit.cli.result_rows import FOUND, make_metric, make_result

TEXTS = ["2.1", "2.10", "2.2"]
RATES = ["0.1", "1e-3", "0.01"]


@pytest.fixture
def answer(fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return an answer of the server: three experiments with texts, numbers and holes."""
    monkeypatch.setenv("RISEML_HOME", str(fake_server.home))
    rows = [
        make_result(sub, at, make_metric("g", 1.0, 0.5 * at), make_metric("g.max", 7.0, last_step=None))
        for at, sub in enumerate((1, 10, 2), 1)
    ]
    for row, text, rate, seed in zip(rows, TEXTS, RATES, ["7", "9007199254740993", "8"], strict=True):
        row["parameters"] = {"version": text, "lr": rate, "seed": seed, "time": "x"}
    rows[2] |= {"rank": None, "seconds": None, "started_at": None, "ended_at": None, "hosts": [], "metrics": []}
    del rows[2]["parameters"]["seed"]
    found: dict[str, Any] = {**FOUND, "parameters": ["version", "lr", "seed"], "same": {"time": "x"}}
    found |= {"metrics": ["g", "g.max"], "best": rows[0], "experiments": rows, "objective": None}
    fake_server.answers["GET /results"] = (200, found)
    return found


def check_types(frame: pandas.DataFrame) -> None:
    """Assert what both ways into pandas have: IDs as texts, metrics as numbers, seconds, and moments."""
    assert frame["id"].tolist() == ["144.1", "144.10", "144.2"]
    assert frame["lr"].tolist() == [0.1, 0.001, 0.01]
    assert frame["g.last"].dtype == frame["time"].dtype == "float64"
    assert frame["g.last"].tolist()[:2] == [0.5, 1.0]
    assert frame['"g".max'].tolist()[:2] == [1.0, 1.0]
    assert frame["g.max.last"].tolist()[:2] == [7.0, 7.0]
    assert frame["time"].tolist()[:2] == [200.0, 2000.0]
    assert frame["g.last"].isna().tolist() == frame["time"].isna().tolist() == [False, False, True]
    assert pandas.api.types.is_datetime64_any_dtype(frame["started"])
    assert frame["started"][0] == pandas.Timestamp(NOW)
    assert frame["started"].isna().tolist() == [False, False, True]
    assert frame["state"].tolist() == ["FINISHED"] * 3


@pytest.mark.usefixtures("answer")
def test_a_data_frame_has_the_types_of_its_columns(fake_server: FakeServer) -> None:
    found = package.results(144, where="lr<1", sort="-lr")
    assert fake_server.asked[-1] == "GET /results?where=lr%3C1&sort=-lr&of=144"
    assert (len(found), repr(found)) == (3, "<3 results; to_pandas() makes a DataFrame>")
    frame = found.to_pandas()
    check_types(frame)
    assert frame["version"].tolist() == TEXTS, "2.10 is not 2.1"
    assert frame["seed"].tolist() == [7, 9007199254740993, pandas.NA]
    assert frame["parameters.time"].tolist() == ["x"] * 3
    assert frame["rank"].tolist() == [1, 2, pandas.NA]
    assert str(frame["started"].dt.tz) == "UTC"


@pytest.mark.usefixtures("answer")
def test_the_line_of_the_docs_reads_the_csv(riseml: Riseml) -> None:
    text = riseml("results", "144", "--csv").out
    frame = pandas.read_csv(io.StringIO(text), dtype={"id": str, "version": str}, parse_dates=["started", "ended"])
    check_types(frame)
    assert frame["version"].tolist() == TEXTS


def test_the_json_is_what_the_function_has(riseml: Riseml, answer: dict[str, Any]) -> None:
    document = json.loads(riseml("results", "144", "--json").out)
    assert Results(document).to_pandas().equals(load_results("144").to_pandas())
    assert load_results(project="toaster").answer == answer


@pytest.mark.parametrize(
    ("identities", "choice", "message", "hint"),
    [
        ((144.1,), {}, "an ID is a whole number or a text, not 144.1", 'write results("144.1")'),
        ((True,), {}, "an ID is a whole number or a text, not True", ""),
        ((), {}, "results takes IDs, or project=NAME", "write results(144)"),
        ((4,), {"project": "x"}, "results takes IDs, or project=NAME", ""),
        (("no/way",), {}, "'no/way' is not an experiment ID", ""),
    ],
)
def test_a_wrong_call_is_refused(identities: tuple[Any, ...], choice: Any, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_results(*identities, **choice)
    assert message in refused.value.message
    assert (refused.value.hint or "").startswith(hint)


@pytest.mark.usefixtures("answer")
def test_the_error_of_the_server_is_raised(fake_server: FakeServer) -> None:
    fake_server.refuse("GET /results", "NotFound", "there is no experiment 9")
    with pytest.raises(NotFound) as refused:
        load_results(9)
    assert refused.value.__notes__ == ["hint: do this"]


@pytest.mark.usefixtures("answer")
def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="to_pandas needs pandas: pip install pandas"):
        load_results(144).to_pandas()


def test_the_package_has_no_other_lazy_name() -> None:
    with pytest.raises(AttributeError, match="module 'riseml' has no attribute 'result'"):
        package.result  # type: ignore[attr-defined]  # noqa: B018  # it is asked for alone
