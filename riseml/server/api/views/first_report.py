"""The first report of a search's trials, which shows whether its rule of stopping begins too early."""

from __future__ import annotations

from riseml.model import SearchRecord
from riseml.store.metrics.metric_store import MetricStore


def explain_early_rule(record: SearchRecord | None, metrics: MetricStore) -> str:
    """Return that `stop.after` is before the first reported step; empty when it is not, or no trial was compared yet.

    Each trial is then compared at its first report, so that `after` gives it no time. The function reads one trial,
    because the trials of a search report alike.
    """
    rule = None if record is None else record.plan.search.stop
    if record is None or rule is None:
        return ""
    compared = next((trial for trial in record.trials if trial.reached), None)
    history = () if compared is None else metrics.read_history(compared.experiment, record.plan.search.metric)
    first = history[0].first_step if history else None
    if first is None or first <= rule.after:
        return ""
    return (
        f"search.stop.after is {rule.after:,}, before the first reported step {first:,}:"
        " trials are compared at their first report, and a larger `after` gives them time"
    )
