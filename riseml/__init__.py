"""Distributed training on Docker hosts you own.

Users' containers import this package too, so it must not import anything heavy.
"""

from typing import TYPE_CHECKING

__version__ = "2.0.0.dev0"

if not TYPE_CHECKING:  # a type checker would accept any name of this package

    def __getattr__(name):
        """Return `results`, which is imported when it is first used: `riseml.results(144).to_pandas()`."""
        if name == "results":
            from importlib import import_module

            return import_module("riseml.results")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def report(*positional: object, **values: object) -> None:
    """Report metrics of the training so far: `riseml.report(step=120, loss=0.31)`. Outside of a job it does nothing."""
    from riseml.job_programs import reports

    reports.report(*positional, **values)


def report_result(*positional: object, **values: object) -> None:
    """Report results: `riseml.report_result(accuracy=0.97, loss=0.1)`. Outside of a job it does nothing."""
    report(*positional, **values)
