"""Record what is probably wrong with experiments that run, where a webhook wants to know."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from riseml.base.records import dataclass
from riseml.base.states import State
from riseml.model import Experiment
from riseml.server.clock import now
from riseml.server.webhooks.webhook_file import Webhook
from riseml.store.noted_remarks import RemarkStore

_LOOK_INTERVAL = 25.0  # seconds between two looks at what runs
_MOST_KNOWN = 1000  # experiments whose remarks are remembered


@dataclass(frozen=True, slots=True)
class FoundRemark:
    """What is probably wrong with an experiment at this moment."""

    kind: str  # `analysis.remarks.RemarkKind`
    job: str | None  # None: it is about the whole experiment
    text: str


class RemarkWatch:
    """Stores each kind of remark once for each experiment. One thread uses it.

    Args:
        store: keeps the remarks.
        list_open: returns the experiments that are not closed.
        find: returns what is probably wrong with one that runs.
        is_team: users of the server do not trust each other, so that team projects count.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        store: RemarkStore,
        list_open: Callable[[], Sequence[Experiment]],
        find: Callable[[Experiment], Sequence[FoundRemark]],
        *,
        is_team: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._list_open = list_open
        self._find = find
        self._is_team = is_team
        self._clock = clock
        self._look_at = 0.0
        self._known: OrderedDict[int, frozenset[str]] = OrderedDict()  # kinds that are stored, by experiment

    @property
    def store(self) -> RemarkStore:
        """The remarks that are stored."""
        return self._store

    def look(self, hooks: Sequence[Webhook]) -> None:
        """Look at what runs, if it is time and a webhook wants to know.

        Raises:
            StoreError: a remark is stored later.
        """
        if not hooks or self._clock() < self._look_at:
            return
        self._look_at = self._clock() + _LOOK_INTERVAL
        for experiment in self._list_open():
            project = experiment.team_project if self._is_team else experiment.project
            notify = experiment.plan.policy.notify
            if experiment.state is State.RUNNING and any(hook.wants_remarks(project, notify) for hook in hooks):
                self._look_at_experiment(experiment)

    def _look_at_experiment(self, experiment: Experiment) -> None:
        remarks = self._find(experiment)
        if not remarks:
            return
        kinds = self._known.pop(experiment.id, None)
        kinds = self._store.list_kinds(experiment.id) if kinds is None else kinds
        for remark in remarks:
            if remark.kind not in kinds:
                self._store.add_remark(experiment.id, remark.kind, remark.job, remark.text, now())
                kinds |= {remark.kind}
        self._known[experiment.id] = kinds
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
