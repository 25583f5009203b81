"""Wrong arguments of the functions for programs, and what importing riseml costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import riseml
from riseml import aio
from riseml.python_api.program import Program
from riseml.python_api.runs import Run
from tests.unit.cli.fake_server import FakeServer, end, line, make_experiment, state
from tests.unit.python_api.functions import greet, train


@pytest.fixture(autouse=True)
def _program(fake_server: FakeServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RISEML_HOME", str(fake_server.home))
    monkeypatch.chdir(folder)
    fake_server.experiments["4"] = make_experiment()


def run() -> Run:
    """Return experiment 4 of the fake server, whose home is in the environment now."""
    return Run(Program(), "4")


TRAIN: riseml.TrainDict = {"image": "python:3.11", "run": "python train.py"}

WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: riseml.submit("absent.yml"), riseml.NotFound, "there is no file absent.yml"),
    (lambda: riseml.submit(3), riseml.UsageError, "a project is the path of a riseml.yml"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.submit({"project": "x"}), riseml.SpecError, "spec has 1 problem"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.submit({"project": "x", "train": TRAIN | {"gpus": 1}}), riseml.SpecError, "spec has 1 problem"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.submit({"project": "x", "train": object()}), riseml.UsageError, "spec is of type object"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.submit(".", 3, lr=1), riseml.UsageError, "submit got 3, lr, which only a function takes"),
    (lambda: riseml.submit(train, 1, 2), riseml.UsageError, "train does not take these arguments: too many"),
    (lambda: riseml.submit(train, rate=1), riseml.UsageError, "got an unexpected keyword argument 'rate'"),
    (
        lambda: riseml.submit(greet, message="x"),
        riseml.UsageError,
        "message is an argument of greet, and an option of submit",
    ),
    (lambda: riseml.submit(riseml.call(greet, "x"), 3), riseml.UsageError, "submit got 3, which only a function takes"),
    (lambda: riseml.call(train, 1, 2), riseml.UsageError, "train does not take these arguments: too many"),  # type: ignore[call-arg]  # wrong
    (lambda: riseml.call(greet), riseml.UsageError, "missing a required argument: 'message'"),  # type: ignore[call-arg]  # wrong
    (lambda: riseml.call(print, "x"), riseml.UsageError, "a job cannot import this function"),
    (lambda: riseml.call("train"), riseml.UsageError, "'train' is not a function"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.submit(executor="k8s"), riseml.UsageError, "executor is 'k8s'"),
    (lambda: riseml.submit(allow_env="TOKEN"), riseml.UsageError, "allow_env is a text"),
    (lambda: riseml.submit(message=" "), riseml.UsageError, "message is ' '"),
    (lambda: riseml.submit(after=4.5), riseml.UsageError, "after has 4.5, which is neither a run nor"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.submit(after="4:always"), riseml.UsageError, "after '4:always' has the condition 'always'"),
    (lambda: riseml.submit(after=[4, "a b\n"]), riseml.UsageError, "is not an experiment ID"),
    (lambda: riseml.submit(after=[4] * 101), riseml.UsageError, "after names 101 experiments"),
    (lambda: riseml.submit(inputs="output://4"), riseml.UsageError, "inputs is str, not a dict"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.submit(inputs={"model": 4}), riseml.UsageError, "inputs['model'] is 4, neither"),  # type: ignore[dict-item]  # wrong
    (lambda: riseml.submit(inputs={"model": "data://x"}), riseml.UsageError, "has 1 problem"),
    (lambda: riseml.submit(message=5), riseml.UsageError, "message is 5"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.submit(settings={"train.nope": 1}), riseml.UsageError, "has 1 problem"),
    (lambda: riseml.submit(parameters={"x": 1}), riseml.UsageError, "has 1 problem"),
    (lambda: riseml.map(print, []), riseml.UsageError, "map takes a list of points"),
    (lambda: riseml.map(print, "abc"), riseml.UsageError, "map takes a list of points"),
    (lambda: riseml.map(print, 3), riseml.UsageError, "map takes a list of points"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.map(print, iter([1])), riseml.UsageError, "a job cannot import this function"),
    (
        lambda: riseml.map(train, [{"epochs": 1}, (1, 2)]),
        riseml.UsageError,
        "point 1: train does not take",
    ),
    (lambda: riseml.map(print, [1]), riseml.UsageError, "a job cannot import this function"),
    (lambda: riseml.search(metric="loss", goal="down"), riseml.UsageError, "problem"),
    (lambda: riseml.search("absent"), riseml.NotFound, "there is no file absent"),
    (lambda: riseml.search(trials=-1, metric="loss", goal="minimize"), riseml.UsageError, "problem"),
    (lambda: riseml.get(1.5), riseml.UsageError, "an ID is a whole number or a text, not 1.5"),  # type: ignore[arg-type]  # wrong
    (lambda: riseml.get("a b\n"), riseml.UsageError, "is not an experiment ID"),
    (lambda: riseml.get(77), riseml.NotFound, "77"),
    (lambda: riseml.runs(limit=0), riseml.UsageError, "limit is 0"),
    (lambda: riseml.runs(limit=True), riseml.UsageError, "limit is True"),
    (lambda: riseml.runs(limit=10**6), riseml.UsageError, "limit is 1000000"),
    (lambda: riseml.compare(4), riseml.UsageError, "compare takes two experiments or more"),
    (lambda: riseml.compare(4, 77), riseml.NotFound, "77"),
    (lambda: riseml.compare(4, None), riseml.UsageError, "not None"),  # type: ignore[arg-type]  # wrong
    (lambda: run().wait(-1), riseml.UsageError, "timeout is -1"),
    (lambda: run().wait("1"), riseml.UsageError, "timeout is '1'"),  # type: ignore[arg-type]  # wrong
    (lambda: run().wait(timeout=True), riseml.UsageError, "timeout is True"),
    (lambda: list(run().logs(tail=-1)), riseml.UsageError, "tail is -1"),
    (lambda: run().exec("ls"), riseml.UsageError, "exec takes a list of words"),
    (lambda: run().exec([]), riseml.UsageError, "exec takes a list of words"),
    (lambda: run().exec(["ls"], "worker.9"), riseml.NotFound, "experiment 4 has no job 'worker.9'"),
    (lambda: run().forward(0), riseml.UsageError, "a port is a number from 1 to 65535"),
    (lambda: run().forward(70000), riseml.UsageError, "a port is a number from 1 to 65535"),
    (lambda: run().forward(80, local=-1), riseml.UsageError, "a port is a number from 1 to 65535"),
    (lambda: run().forward("80"), riseml.UsageError, "a port is a number from 1 to 65535"),  # type: ignore[arg-type]  # wrong
    (lambda: run().annotate(tags="best"), riseml.UsageError, "tags is a text"),
    (lambda: run().output.download("x", __file__), riseml.UsageError, "is a file"),
    (lambda: riseml.results(), riseml.UsageError, "results takes IDs, or project=NAME"),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_wrong_arguments_raise_what_and_what_next(
    call: Callable[[], Any], kind: type[Exception], message: str, fake_server: FakeServer
) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)
    assert fake_server.bodies == [], "nothing was submitted"
    error = raised.value
    assert isinstance(error, riseml.RisemlError)
    problems = getattr(error, "problems", ())
    assert error.hint or problems or kind is riseml.NotFound, "what to do next"
    assert error.hint is None or error.__notes__ == [f"hint: {error.hint}"], "Python prints it"


def test_a_job_that_prints_all_the_time_is_waited_for_as_long_as_the_call_says(fake_server: FakeServer) -> None:
    fake_server.entries = [state("RUNNING", 1), line("one", 2), line("two", 3), end("FINISHED", 4)]
    for call in (lambda: run().wait(0), lambda: list(run().logs(timeout=0))):
        with pytest.raises(TimeoutError, match="has not ended within 0 s; it goes on"):
            call()
    fake_server.entries = [state("RUNNING", 1), end("FINISHED", 4)]
    assert run().wait(0).id == "4", "it has ended already"


@pytest.mark.parametrize(("name", "kind"), [("FAILED", riseml.ExperimentFailed), ("KILLED", riseml.Interrupted)])
def test_a_bad_end_is_an_error_with_the_last_lines(
    fake_server: FakeServer, name: str, kind: type[riseml.RisemlError]
) -> None:
    fake_server.entries = [state("RUNNING", 1), line("one", 2), end(name, 3)]
    shown = {"state": name, "message": "exit code 7", "cause": "worker.1", "last_lines": ["no memory"]}
    fake_server.experiments["4"] |= shown  # type: ignore[typeddict-item]  # the fields of the shape, by name
    with pytest.raises(kind, match=f"experiment 4 {name}: exit code 7") as raised:
        run().wait(60)
    last_lines, hint = raised.value.__notes__
    assert last_lines == "last lines of 4.worker.1:\nno memory"
    assert hint == f"hint: {raised.value.hint}"
    assert run().wait(60, check=False).id == "4"
    assert [entry.text for entry in run().logs()] == ["one"]
    html = run()._repr_html_()
    assert html.startswith("<table><caption>Experiment 4</caption><tr><th>State</th>")


def test_a_notebook_shows_foreign_text_as_text(fake_server: FakeServer) -> None:
    fake_server.experiments["4"] |= {"message": "<script>", "parameters": {"<b>": "&"}}
    assert "<td>&lt;script&gt;</td>" in run()._repr_html_()
    assert "<td>&lt;b&gt;=&amp;</td>" in run()._repr_html_()


def test_importing_riseml_imports_nothing_and_every_name_is_there() -> None:
    """A job and each supervisor import it, too."""
    script = (
        "import sys; before = set(sys.modules); import riseml; print(sorted(set(sys.modules) - before));"
        "[getattr(riseml, name) for names in riseml._API.values() for name in names]; riseml.aio.submit"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['riseml']\n"


def test_no_name_for_programs_is_that_of_a_room() -> None:
    """`import riseml.searches` sets the attribute `searches` of riseml: a function of that name would be gone."""
    names = {name for names in riseml._API.values() for name in names} | {"aio", "report", "results"}
    rooms = [
        path.parent.name for path in Path(riseml.__file__).parent.glob("*/__init__.py")
    ]  # not what a checkout left
    assert names.isdisjoint(rooms)


def test_the_functions_with_asyncio_are_those_without() -> None:
    for name in (*riseml._API["public"], "results"):
        assert callable(getattr(aio, name))
    methods = {name for name in dir(aio.AsyncRun) if not name.startswith("_")} - {"run"}
    present = {name for name in dir(Run) if not name.startswith("_")}
    assert methods <= present
    with_a_thread_of_their_own = {"forward", "program"}
    assert present - methods - with_a_thread_of_their_own == {"wait_until", "logs_until"}
