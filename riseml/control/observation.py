"""The second input of `decide`, after the records: hosts, time, pending and failed actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from riseml.base.names import SUBNETS, HostName, JobName
from riseml.base.records import dataclass
from riseml.base.states import Network, State
from riseml.control.actions import Action
from riseml.control.quotas import QuotaRules
from riseml.model import ActionFailure, Experiment, HostObservation, Job, JobKey, Predecessor


@dataclass(frozen=True, slots=True)
class SaveObservation:
    """What the server knows about the copies of an output in its store."""

    at: datetime | None = None  # when the last complete copy ended; None: there is none
    last: int = 0  # the attempt after whose end that copy was made; 0: jobs were running
    moved_at: datetime | None = None  # when something last arrived in the store
    given_up: int = 0  # the attempt whose last copy a user gave up; 0: none


NEVER_SAVED = SaveObservation()
"""The state of an output before its first copy."""


@dataclass(frozen=True, slots=True)
class PredecessorObservation:
    """What the server knows about an experiment, or a set, that another experiment waits for."""

    state: State
    message: str = ""  # why it is in this state
    closed: bool = False  # nothing of it is left on any host: its output is complete


@dataclass(frozen=True, slots=True)
class Observation:
    """What one pass of the loop saw."""

    now: datetime  # the server's clock
    hosts: Mapping[HostName, HostObservation]
    # hosts of the pool that have not answered since the server started -> when the server first asked them
    unseen: Mapping[HostName, datetime] = field(default_factory=dict)
    busy: frozenset[Action] = frozenset()  # pending actions: begun, not ended
    problems: Mapping[Action, ActionFailure] = field(default_factory=dict)  # actions that failed the last time
    lost_after: float = 300.0  # seconds of silence after which a host counts as lost
    subnets: str = SUBNETS  # the range for the networks of experiments, CIDR
    network: Network = Network.BRIDGE  # network of gangs on several hosts; BRIDGE: a gang must be on one host
    shared_output: bool = True  # all hosts see the same output folder
    # seconds for which a running job has printed nothing and used no processor; only of plans with `idle_timeout`
    quiet: Mapping[JobKey, float] = field(default_factory=dict)
    # jobs whose last line says that they wait for another job, which has ended: the name of that job
    stuck: Mapping[JobKey, JobName] = field(default_factory=dict)
    fetched: frozenset[int] = frozenset()  # ids of experiments whose data is there; only of plans with `data`
    # id of an experiment with data that not every host sees -> the hosts that see it, or have a copy of it
    copied: Mapping[int, frozenset[HostName]] = field(default_factory=dict)
    saves: Mapping[int, SaveObservation] = field(default_factory=dict)  # id of an experiment with `save` -> its copies
    filled: frozenset[int] = frozenset()  # ids of experiments whose output has what the last attempt saved
    inherited: frozenset[int] = frozenset()  # ids of experiments whose output has the files of their parent
    # id of an experiment whose output takes more than the server allows -> the sentence that says how much
    outputs_over: Mapping[int, str] = field(default_factory=dict)
    # id of a running experiment with `on: nan` whose loss is not finite any more -> the sentence that says so
    not_finite: Mapping[int, str] = field(default_factory=dict)
    # what experiments that have no place yet wait for
    predecessors: Mapping[Predecessor, PredecessorObservation] = field(default_factory=dict)
    # id of an experiment that waits for others no longer, and whose input is not there -> the sentence that says so
    lost_inputs: Mapping[int, str] = field(default_factory=dict)
    # id of a running experiment that makes no progress, and that `stall` ends then -> the sentence that says so
    stalled: Mapping[int, str] = field(default_factory=dict)
    # running jobs that their hosts do not show now -> when they were last known to run, by the server's clock
    last_signs: Mapping[JobKey, datetime] = field(default_factory=dict)
    team: QuotaRules | None = None  # quotas and usage of the users; None: the server has one user
    last_used: Mapping[int, datetime] = field(default_factory=dict)  # id of a companion -> when a client last used it

    def is_lost(self, host: HostObservation) -> bool:
        """Return True when a host has been silent for `lost_after` seconds or longer."""
        return host.silent_since is not None and self.is_over(host.silent_since)

    def is_unknown(self, host: HostName) -> bool:
        """Return True when nothing is known of a host of the pool yet, and it does not count as lost."""
        since = self.unseen.get(host)
        return since is not None and not self.is_over(since)

    def find_node(self, experiment: Experiment, job: Job) -> str | None:
        """Return the machine on which a host with several has started a job; None: no such host, or not known."""
        host = None if job.host is None else self.hosts.get(job.host)
        container = None if host is None else host.containers.get(experiment.key_of(job))
        return None if container is None else container.node

    def is_over(self, since: datetime) -> bool:
        """Return True when `lost_after` seconds have passed since `since`."""
        return (self.now - since).total_seconds() >= self.lost_after
