"""The submission of a TensorBoard over the outputs of experiments: check it, plan it, make the record to store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from riseml import wire
from riseml.base.errors import Conflict, NotFound, Refused, Unreachable, UsageError
from riseml.base.names import HostName, experiment_name, parse_id
from riseml.base.states import TERMINAL
from riseml.model import Caller, Experiment
from riseml.planning.companions import NamedOutputs, choose_environment, plan_tensorboard
from riseml.planning.plan import first_jobs
from riseml.server.api.views.named_experiments import find_details
from riseml.server.hosts.host_set import HostSet
from riseml.server.services import Services, Stores
from riseml.store.insertion import NewExperiments

MOST_SHOWN = 500  # experiments in one TensorBoard

_LEFT_AFTER = 60.0  # seconds without a client after which a TensorBoard ends


def find_outputs(names: Sequence[str], caller: Caller, stores: Stores) -> tuple[NamedOutputs, ...]:
    """Return the experiments and sets whose outputs the user wants to see, each once.

    Raises:
        NotFound: one does not exist.
        Conflict: one of them has not begun.
        UsageError: an ID names a job, or there are too many experiments.
    """
    outputs = tuple(_find_named(name, caller, stores) for name in dict.fromkeys(names))
    count = sum(len(output.members) for output in outputs)
    if count > MOST_SHOWN:
        raise UsageError(f"one TensorBoard shows at most {MOST_SHOWN} experiments, and these are {count}", "name fewer")
    return outputs


def make_tensorboard(request: wire.TensorBoardRequest, caller: Caller, services: Services) -> NewExperiments:
    """Return the record to store for a TensorBoard.

    Raises:
        Refused: the outputs are on several hosts, or another user's; or the server's stores.yml gives jobs no keys for
            their logs.
        NotFound: an output folder is gone.
        Unreachable: the host of the outputs does not answer, or is not in the pool.
        RisemlError: as `find_outputs`.
    """
    outputs = find_outputs(request["experiments"], caller, services.stores)
    _check_owners(outputs, caller, services.hosts)
    host = _find_host(outputs, services.hosts)
    for output in outputs:
        _check_folder(output, services.hosts)
    plan = plan_tensorboard(outputs, host, request.get("left_after", _LEFT_AFTER))
    services.data.fetcher.check_plans([plan])
    source = choose_environment(outputs)
    return NewExperiments(
        owner=caller.owner,
        project=plan.project,
        team_project=outputs[0].members[0].team_project,
        config="",
        snapshot=source.snapshot if plan.image.files else "",
        plans=((plan, first_jobs(plan)),),
        key=request.get("key"),
        resolved=source.resolved,
    )


def _find_named(name: str, caller: Caller, stores: Stores) -> NamedOutputs:
    canonical_id = parse_id(name)
    if canonical_id.job is not None:
        raise UsageError(
            f"{canonical_id} is a job", f"name its experiment: {experiment_name(canonical_id.number, canonical_id.sub)}"
        )
    members = tuple(detail.experiment for detail in find_details(canonical_id, caller, stores))
    is_set = members[0].set_id is not None and canonical_id.sub is None
    title = experiment_name(canonical_id.number, canonical_id.sub)
    for member in members:
        if member.plan.companion is not None:
            kind = member.plan.companion.kind.value
            raise UsageError(f"{title} is a {kind} and has no training to show", "name experiments that train")
    if all(member.started_at is None for member in members):
        why = "never ran" if all(member.state in TERMINAL for member in members) else "has not begun"
        raise Conflict(
            f"{'set' if is_set else 'experiment'} {title} {why}: it has no output",
            f"`riseml status {title}` says why",
        )
    return NamedOutputs(title, members, is_set)


def _check_owners(outputs: Sequence[NamedOutputs], caller: Caller, hosts: HostSet) -> None:
    """Refuse outputs of another user of a team's server: they are open to the jobs of that user alone."""
    foreign = [output for output in outputs if any(member.owner.uid != caller.owner.uid for member in output.members)]
    if hosts.rules is not None and foreign:
        owner = foreign[0].members[0].owner.user
        raise Refused(
            f"the output of {foreign[0].name} belongs to {owner}, and only jobs of {owner} read it",
            f"`riseml plot {owner}.{foreign[0].name}` shows its metrics, or copy its logs with `riseml cp`",
        )


def _check_folder(output: NamedOutputs, hosts: HostSet) -> None:
    """Check that the folder exists, where the server sees it."""
    root = hosts.roots.output
    output_hosts = _list_hosts((output,))
    if not isinstance(root, str) or not all(hosts.is_this_machine(host) for host in output_hosts):
        return
    if not Path(root, output.folder).is_dir():
        raise NotFound(f"the output folder of {output.name} is gone: {root}/{output.folder}", "name other experiments")


def _find_host(outputs: Sequence[NamedOutputs], hosts: HostSet) -> HostName | None:
    """Return the host that has the outputs; None: every host has them."""
    output_hosts = _list_hosts(outputs)
    if hosts.shared_output:
        return None
    if len(output_hosts) > 1:
        where = "; ".join(f"{output.name} on {', '.join(sorted(_list_hosts((output,))))}" for output in outputs)
        raise Refused(
            f"the outputs are on several hosts, and one TensorBoard runs on one: {where}",
            "name experiments of one host, or give the hosts a shared folder: `storage.output` in pool.yml",
        )
    if not output_hosts:
        names = ", ".join(output.name for output in outputs)
        problem = f"{names} has no host now, and its outputs are on the host of its last attempt"
        raise Conflict(problem, "try again when it runs")
    (host,) = output_hosts
    if host not in hosts.names:
        raise Unreachable(f"{host}, the host of the outputs, is not in the pool", "`riseml pool` lists the hosts")
    trouble = hosts.find_troubles().get(host)
    if trouble is not None:
        raise Unreachable(f"{host}, the host of the outputs, does not answer: {trouble.message}", trouble.hint)
    return host


def _list_hosts(outputs: Sequence[NamedOutputs]) -> frozenset[HostName]:
    members: list[Experiment] = [
        member for output in outputs for member in output.members if member.started_at is not None
    ]
    return frozenset(job.host for member in members for job in member.gang if job.host is not None)
