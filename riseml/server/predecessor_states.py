"""What the server knows about the experiments that others wait for: their states, and whether their outputs are there.

It follows from the store and the hosts alone, so that a server that starts goes on with every wait.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from riseml.base.folders import is_absent
from riseml.base.states import SENTENCES, TERMINAL
from riseml.control.observation import PredecessorObservation
from riseml.control.predecessors import may_await_others
from riseml.control.rollup import roll_up_set
from riseml.control.search_steps import find_search_failure
from riseml.model import Experiment, InputFolder, Predecessor, World
from riseml.server.hosts.host_set import HostSet
from riseml.server.services import Stores


def observe_predecessors(world: World, stores: Stores) -> dict[Predecessor, PredecessorObservation]:
    """Return the states of all that the open experiments wait for; empty, without a query, where none waits."""
    waiting = [experiment for experiment in world.experiments if may_await_others(experiment)]
    awaited = dict.fromkeys(predecessor for experiment in waiting for predecessor in experiment.plan.after)
    if not awaited:
        return {}
    going = {experiment.id: experiment for experiment in world.experiments}
    return {predecessor: observe_predecessor(predecessor, going, stores) for predecessor in awaited}


def observe_predecessor(
    predecessor: Predecessor, going: Mapping[int, Experiment], stores: Stores
) -> PredecessorObservation:
    """Return the state of one experiment, or of one set.

    Args:
        predecessor: what is waited for.
        going: the experiments that are not closed, by their keys: they need no query.
        stores: of the server.
    """
    if predecessor.set_id is None:
        experiment = going.get(predecessor.record) or stores.experiments.get_record(predecessor.record)
        message = experiment.message or SENTENCES[experiment.reason]
        return PredecessorObservation(experiment.state, message, experiment.closed)
    members = [experiment for experiment in going.values() if experiment.set_id == predecessor.set_id]
    if any(member.state not in TERMINAL for member in members):  # the first one tells whether the set has begun
        first = going.get(predecessor.record) or stores.experiments.get_record(predecessor.record)
        return PredecessorObservation(roll_up_set([first, *members])[0])
    details = stores.experiments.find_by_number(predecessor.owner, predecessor.number)
    return _observe_set(predecessor.set_id, [detail.experiment for detail in details], stores)


def _observe_set(set_id: int, members: Collection[Experiment], stores: Stores) -> PredecessorObservation:
    search = stores.searches.load_searches((set_id,)).get(set_id)
    goes_on = search is not None and search.end is None
    state, reason = roll_up_set(list(members), goes_on=goes_on, failure=find_search_failure(search))
    is_closed = all(member.closed for member in members) and not goes_on
    return PredecessorObservation(state, SENTENCES[reason], is_closed)


def find_lost_inputs(
    world: World, observed: Mapping[Predecessor, PredecessorObservation], hosts: HostSet
) -> dict[int, str]:
    """Return the experiments that wait no longer and whose inputs are not there, with a sentence for each.

    Where the server does not see the outputs itself, the hosts find out at the start of the jobs.
    """
    lost: dict[int, str] = {}
    for experiment in world.experiments if observed else ():
        predecessors = experiment.plan.after if may_await_others(experiment) and experiment.plan.inputs else ()
        if predecessors and all(_has_ended(observed.get(predecessor)) for predecessor in predecessors):
            missing = [source for source in experiment.plan.inputs if is_missing(source, hosts)]
            if missing:
                lost[experiment.id] = "; ".join(map(describe_missing, missing))
    return lost


def is_missing(source: InputFolder, hosts: HostSet) -> bool:
    """Return True when the server sees the outputs, and an input is not among them."""
    root = hosts.find_target(None).roots.output
    if not isinstance(root, str) or not any(map(hosts.is_this_machine, hosts.names)):
        return False
    return is_absent(Path(root), PurePosixPath(source.folder, source.path))


def describe_missing(source: InputFolder) -> str:
    """Return a sentence about an input that is not there."""
    whose = f"the output folder {source.folder}"
    return f"{source.name}: {whose} has no {source.path}" if source.path else f"{source.name}: {whose} is not there"


def _has_ended(observed: PredecessorObservation | None) -> bool:
    return observed is not None and observed.state in TERMINAL and observed.closed
