"""Distributed training on Docker hosts you own.

Users' containers import this package too, so it must not import anything heavy.
"""

__version__ = "2.0.0.dev0"


def report(*positional: object, **values: object) -> None:
    """Report metrics of the training so far: `riseml.report(step=120, loss=0.31)`. Outside of a job it does nothing."""
    from riseml.job_programs import reports

    reports.report(*positional, **values)


def report_result(*positional: object, **values: object) -> None:
    """Report results: `riseml.report_result(accuracy=0.97, loss=0.1)`. Outside of a job it does nothing."""
    report(*positional, **values)
