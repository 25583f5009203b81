"""Distributed training on Docker hosts you own.

Users' containers import this package too, and each job has a supervisor that does: it must import nothing at all.
"""

__version__ = "2.0.0.dev0"

TYPE_CHECKING = False  # type checkers take it for true; to import typing costs a supervisor more than all else here
if TYPE_CHECKING:
    from collections.abc import Iterable

    from riseml.cli.python_results import Results


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
    from riseml.cli.python_results import load_results

    return load_results(*identities, project=project, where=where, sort=sort)


def report(*positional: object, **values: object) -> None:
    """Report metrics of the training so far: `riseml.report(step=120, loss=0.31)`. Outside of a job it does nothing."""
    from riseml.job_programs import reports

    reports.report(*positional, **values)


def report_result(*positional: object, **values: object) -> None:
    """Report results: `riseml.report_result(accuracy=0.97, loss=0.1)`. Outside of a job it does nothing."""
    report(*positional, **values)
