"""What a submission waits for and reads: experiments of `--after` and of `inputs`, found as its caller sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from riseml import wire
from riseml.base.errors import Conflict, NotFound, Refused, UsageError
from riseml.base.names import CanonicalId, parse_id
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, State
from riseml.control.visible_names import name_seen
from riseml.files.storage_files import ListRequest
from riseml.model import Caller, Experiment, InputFolder, Plan, Predecessor
from riseml.planning.launch import output_folder
from riseml.server.api.views.named_experiments import find_details
from riseml.server.data.file_places import open_output
from riseml.server.predecessor_states import observe_predecessor
from riseml.server.services import Services
from riseml.spec.config.types import InputSource
from riseml.spec.scalars.input_url import parse_input_url

ANY = ":any"
"""Behind an ID of `--after`: the experiment may also have failed or been killed."""


@dataclass(frozen=True, slots=True)
class _Named:
    """An experiment or a set that a submission names."""

    id: CanonicalId
    members: tuple[Experiment, ...]

    @property
    def is_set(self) -> bool:
        return self.members[0].set_id is not None and self.id.sub is None

    @property
    def name(self) -> str:
        return str(self.id.experiment)


@dataclass(frozen=True, slots=True)
class PredecessorFinder:
    """Finds what submissions name."""

    services: Services

    def add_to_plans(
        self, caller: Caller, submission: wire.Submission, plans: tuple[Plan, ...]
    ) -> Callable[[Plan], Plan]:
        """Return what gives a plan of the submission its predecessors and inputs.

        Args:
            caller: who submits.
            submission: with what it waits for.
            plans: all of the submission; they have the same inputs.

        Raises:
            NotFound: there is no such experiment, the caller does not see it, or its output is not there.
            Conflict: it has ended, and not as it should have.
            UsageError: it is no ID of an experiment, or it trains nothing.
            Refused: the hosts share no outputs.
        """
        sources = plans[0].policy.inputs
        named = submission.get("after", [])
        if not sources and not named:
            return lambda plan: plan
        after: dict[tuple[int, int | None], Predecessor] = {}
        for text in named:
            predecessor = self._find_predecessor(caller, text)
            after[predecessor.record, predecessor.set_id] = predecessor
        inputs = tuple(self._find_input(caller, source, after) for source in sources)
        for predecessor in after.values():
            self._check_end(caller, predecessor)
        return lambda plan: replace(plan, after=tuple(after.values()), inputs=inputs)

    def _find_predecessor(self, caller: Caller, text: str) -> Predecessor:
        accepts_any_end = text.endswith(ANY)
        canonical_id = parse_id(text.removesuffix(ANY))
        if canonical_id.job is not None:
            raise UsageError(f"{text} names a job", f"name the experiment: `--after {canonical_id.experiment}`")
        return replace(_make_predecessor(self._find(caller, canonical_id)), accepts_any_end=accepts_any_end)

    def _find_input(
        self, caller: Caller, source: InputSource, after: dict[tuple[int, int | None], Predecessor]
    ) -> InputFolder:
        """Return the folder of an input; what it is of is a predecessor, too."""
        hosts = self.services.hosts
        if not hosts.shared_output:
            raise Refused(
                f"train.inputs.{source.name}: the hosts of this pool do not share their outputs",
                "give them a shared folder: `storage.output` in pool.yml; or save and fetch it: `riseml docs stores`",
            )
        url = parse_input_url(source.url)
        named = self._find(caller, url.experiment)
        predecessor = _make_predecessor(named)
        key = (predecessor.record, predecessor.set_id)
        after[key] = replace(after.get(key, predecessor), has_input=True)
        folder = output_folder(named.members[0])
        if all(member.closed for member in named.members):
            self._check_output(caller, named, url.path)
        return InputFolder(source.name, str(folder.parent if named.is_set else folder), url.path)

    def _find(self, caller: Caller, canonical_id: CanonicalId) -> _Named:
        details = find_details(canonical_id, caller, self.services.stores)
        members = tuple(detail.experiment for detail in details)
        if members[0].plan.companion is not None:
            raise UsageError(f"{canonical_id} trains nothing", "name an experiment that `riseml train` made")
        return _Named(canonical_id, members)

    def _check_end(self, caller: Caller, predecessor: Predecessor) -> None:
        """Refuse a predecessor that has ended otherwise than it must: the wait would end at once."""
        observed = observe_predecessor(predecessor, {}, self.services.stores)
        if predecessor.accepts_any_end or observed.state not in TERMINAL - {State.FINISHED}:
            return
        own = predecessor.owner == caller.user
        name = predecessor.name if own else f"{predecessor.owner}.{predecessor.name}"
        raise Conflict(
            f"{name} {observed.state.value}, and this waits until it has FINISHED",
            f"`--after {name}{ANY}` starts it however {name} ended; `riseml rerun {name}` runs {name} again",
        )

    def _check_output(self, caller: Caller, named: _Named, path: str) -> None:
        """Check that a part of an output is there. A link in it is for the jobs to follow."""
        try:
            files = open_output(self.services.hosts, named.members, named.id)
            files.list_files(ListRequest(path, limit=0))
        except NotFound as error:
            name = name_seen(caller, named.members[0]) if not named.is_set else named.name
            raise NotFound(
                f"{error.message}, and an input is read there",
                f"`riseml ls output://{named.name}` shows what is there; `riseml rerun {name}` makes it again",
            ) from None
        except Refused:
            return


def _make_predecessor(named: _Named) -> Predecessor:
    first = named.members[0]
    set_id = first.set_id if named.is_set else None
    sub = None if named.is_set else first.sub
    return Predecessor(first.id, first.owner.user, first.number, sub, set_id, first.team_project)
