"""The members that a search adds to a set while a stream of its log is open."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.base.records import dataclass
from riseml.base.states import Reason
from riseml.control.search_steps import find_search_failure
from riseml.model import Experiment
from riseml.planning.repetition import fold_record
from riseml.server.api.views.first_report import explain_early_rule
from riseml.server.api.views.search_view import describe_end
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.searches import SearchStore


@dataclass(frozen=True, slots=True)
class SetGrowth:
    """Lists the members of one set, and says whether further ones may follow."""

    searches: SearchStore
    metrics: MetricStore
    set_id: int
    reader: str | None = None  # the user of the request; None: that of the set

    def goes_on(self) -> bool:
        """Return True while a search may make further members. Ask before `list_members`."""
        return self.searches.goes_on(self.set_id)

    def list_members(self, skip: int = 0) -> tuple[int, ...]:
        """Return the ids of all members but the first `skip`, in the order of their numbers."""
        return self.searches.list_members(self.set_id, skip)

    def find_failure(self) -> Reason | None:
        """Return why the search has failed; None: it has not, or goes on."""
        return find_search_failure(self.searches.load_searches((self.set_id,)).get(self.set_id))

    def describe_end(self, members: Sequence[Experiment]) -> str:
        """Return what became of the set: `6 of 8 finished, 2 failed, best 144.3 accuracy 0.981 (lr=0.01)`."""
        record = self.searches.load_searches((self.set_id,)).get(self.set_id)
        folded = None if record is None else fold_record(record)
        has_best = folded is not None and bool(folded.find_best() or folded.list_front())
        summaries = {} if has_best else self.metrics.read_summaries([member.id for member in members])
        names = {name for metrics in summaries.values() for name in metrics}
        described = describe_end(members, record, names, self.reader)
        return "; ".join(filter(None, [described, explain_early_rule(record, self.metrics)]))
