"""Distributed training on Docker hosts you own.

    import riseml
    run = riseml.submit("riseml.yml", parameters={"lr": 0.1})
    for line in run.logs():
        ...
    run.wait()

Inside of a job, `riseml.report(step=120, loss=0.31)` reports metrics.

Users' containers import this package too, and each job has a supervisor that does: it must import nothing at all.
"""

__version__ = "2.0.0.dev0"

_API = {
    "function_calls": ("Call", "call"),
    "public": ("compare", "get", "map", "runs", "search", "submit"),
    "runs": ("CommandResult", "MetricPoint", "Run", "RunJob", "RunLine"),
    "outputs": ("OutputFile", "RunOutput"),
    "results": ("Results",),
    "shapes": ("SpecDict", "TrainDict"),
    "errors": (
        "Conflict",
        "ExperimentFailed",
        "Interrupted",
        "NotFound",
        "Refused",
        "RisemlError",
        "SpecError",
        "UsageError",
        "Unreachable",
    ),
}
"""Names for programs, by the module of `riseml.python_api` that is imported when one of them is first used."""

_MODULES = ("aio", "shapes")
"""Modules of `riseml.python_api` for programs."""

TYPE_CHECKING = False  # type checkers take it for true; to import typing costs a supervisor more than all else here
if TYPE_CHECKING:
    from collections.abc import Iterable

    from riseml.python_api import aio as aio
    from riseml.python_api import shapes as shapes
    from riseml.python_api.errors import Conflict as Conflict
    from riseml.python_api.errors import ExperimentFailed as ExperimentFailed
    from riseml.python_api.errors import Interrupted as Interrupted
    from riseml.python_api.errors import NotFound as NotFound
    from riseml.python_api.errors import Refused as Refused
    from riseml.python_api.errors import RisemlError as RisemlError
    from riseml.python_api.errors import SpecError as SpecError
    from riseml.python_api.errors import Unreachable as Unreachable
    from riseml.python_api.errors import UsageError as UsageError
    from riseml.python_api.function_calls import Call as Call
    from riseml.python_api.function_calls import call as call
    from riseml.python_api.outputs import OutputFile as OutputFile
    from riseml.python_api.outputs import RunOutput as RunOutput
    from riseml.python_api.public import compare as compare
    from riseml.python_api.public import get as get
    from riseml.python_api.public import map as map
    from riseml.python_api.public import runs as runs
    from riseml.python_api.public import search as search
    from riseml.python_api.public import submit as submit
    from riseml.python_api.results import Results as Results
    from riseml.python_api.runs import CommandResult as CommandResult
    from riseml.python_api.runs import MetricPoint as MetricPoint
    from riseml.python_api.runs import Run as Run
    from riseml.python_api.runs import RunJob as RunJob
    from riseml.python_api.runs import RunLine as RunLine
    from riseml.python_api.shapes import SpecDict as SpecDict
    from riseml.python_api.shapes import TrainDict as TrainDict
else:  # a type checker must not take every name for one of these

    def __getattr__(name: str) -> object:
        """Return a name for programs; the first use imports its module."""
        if name in _MODULES:
            from importlib import import_module

            return import_module(f"riseml.python_api.{name}")
        for module, names in _API.items():
            if name in names:
                from importlib import import_module

                return getattr(import_module(f"riseml.python_api.{module}"), name)
        raise AttributeError(f"module 'riseml' has no attribute {name!r}")


def results(
    *identities: "int | str", project: "str | None" = None, where: "str | Iterable[str]" = (), sort: str = ""
) -> "Results":
    """Return the results of experiments and sets: `riseml.results(144).to_pandas()`.

    Args:
        identities: `144`, `"144.3"`; none: all experiments of the project.
        project: its name, instead of IDs.
        where: conditions, as `riseml results --where` takes them.
        sort: columns, as `riseml results --sort` takes them.
    """
    from riseml.python_api.results import load_results

    return load_results(*identities, project=project, where=where, sort=sort)


def report(*positional: object, **values: object) -> None:
    """Report metrics of the training so far: `riseml.report(step=120, loss=0.31)`. Outside of a job it does nothing."""
    from riseml.job_programs import reports

    reports.report(*positional, **values)


def report_result(*positional: object, **values: object) -> None:
    """Report results: `riseml.report_result(accuracy=0.97, loss=0.1)`. Outside of a job it does nothing."""
    report(*positional, **values)


def progress(done: object, of: object) -> None:  # names: `progress(done, of)`, as users call it
    """Tell how far the training is: `riseml.progress(450, 1000)`. Outside of a job it does nothing."""
    from riseml.job_programs import reports

    reports.progress(done, of)


def report_image(name: object, step: object, image: object) -> None:
    """Report a picture: a file, pixels, or a picture of PIL or Matplotlib. Outside of a job it does nothing."""
    from riseml.job_programs import media_reports

    media_reports.report_image(name, step, image)


def report_audio(name: object, step: object, audio: object, rate: int = 16000) -> None:
    """Report sound: a file, or samples between -1 and 1. Outside of a job it does nothing."""
    from riseml.job_programs import media_reports

    media_reports.report_audio(name, step, audio, rate)


def report_table(
    name: object, columns: "Iterable[object]", rows: "Iterable[Iterable[object]]", step: object = 0, view: str = "table"
) -> None:
    """Report a table; `view` is `table`, `matrix` or `curve`. Outside of a job it does nothing."""
    from riseml.job_programs import media_reports

    media_reports.report_table(name, columns, rows, step, view)


def report_text(name: object, text: object, step: object = 0) -> None:
    """Report a text, which the page shows as Markdown. Outside of a job it does nothing."""
    from riseml.job_programs import media_reports

    media_reports.report_text(name, text, step)
