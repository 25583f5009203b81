"""Mutants: each one replaces a function of the loop by one that breaks a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from riseml.base.states import TERMINAL, JobDuty, State, Wanted
from riseml.control import (
    converge,
    decide,
    images,
    networks,
    observation,
    predecessors,
    quotas,
    saving,
    settle,
    verdict,
)
from riseml.control.actions import Action, PrepareHost, ReleaseHost, StartJob
from riseml.control.placement import candidates, fit, place, reserve, room
from riseml.control.placement.candidates import HostExclusion
from riseml.control.times import HostClocks
from riseml.executors.slurm import gang_roles, gang_supervisor
from riseml.job_programs import gang_rules
from riseml.model import Experiment, Job, JobKey, World
from riseml.store import experiments as rows
from riseml.store.experiments import ExperimentStore

Mutate = Callable[[Callable[..., Any]], Callable[..., Any]]
Change = tuple[Any, str, Mutate]


def end_when_one_job_is_quiet(original: Callable[..., bool]) -> Callable[..., bool]:
    def mutant(experiment: Experiment, seen: Any) -> bool:
        limit, jobs = experiment.plan.policy.idle_timeout, experiment.gang
        return limit is not None and any(seen.quiet.get(experiment.key_of(job), 0.0) >= limit for job in jobs)

    return mutant


def leave_orphans(original: Callable[..., Iterator[Action]]) -> Callable[..., Iterator[Action]]:
    def mutant(name: Any, key: JobKey, found: Any, experiment: Experiment | None, seen: Any) -> Iterator[Action]:
        return iter(()) if experiment is None else original(name, key, found, experiment, seen)

    return mutant


def let_servers_run_on(original: Callable[..., Job]) -> Callable[..., Job]:
    def mutant(job: Job, *rest: Any) -> Job:
        return job if job.part is JobDuty.SERVES else original(job, *rest)

    return mutant


def give_up_on_starts_quietly(original: Callable[..., Job]) -> Callable[..., Job]:
    def mutant(job: Job, seen: Any, state: State, *rest: Any) -> Job:
        return job if state is State.FAILED and job.state is State.STARTING else original(job, seen, state, *rest)

    return mutant


def forget_what_is_starting(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(capacity: Any, jobs: Any) -> Any:
        return original(capacity, [job for job in jobs if job.state is State.RUNNING])

    return mutant


def forget_devices(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(capacity: Any, jobs: Any) -> Any:
        held = list(jobs)
        free = original(capacity, held)
        count = sum(len(job.gpus) for job in held)
        return replace(free, gpus=capacity.gpus[: len(capacity.gpus) - count])

    return mutant


def place_what_fits(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(waiting: Experiment, *rest: Any) -> Experiment | None:
        found: Experiment | None = original(waiting, *rest)
        if found is None or len(found.jobs) < 3:
            return found
        last = replace(found.jobs[-1], host=None, state=State.CREATED)
        return replace(found, jobs=(*found.jobs[:-1], last))

    return mutant


def retry_after_a_kill(original: Callable[..., Experiment]) -> Callable[..., Experiment]:
    def mutant(experiment: Experiment, seen: Any) -> Experiment:
        going = experiment.verdict is not None and experiment.verdict.again
        return experiment if going else original(experiment, seen)

    return mutant


def believe_in_success(original: Callable[..., Job]) -> Callable[..., Job]:
    def mutant(job: Job, *rest: Any) -> Job:
        found = original(job, *rest)
        return replace(found, state=State.FINISHED) if found.part is JobDuty.DECIDES else found

    return mutant


def close_at_once(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_: False


def act_on_silent_hosts(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(world: Any, seen: Any, occupied: Any) -> Any:
        hosts = {name: replace(host, silent_since=None) for name, host in seen.hosts.items()}
        return original(world, replace(seen, hosts=hosts), occupied)

    return mutant


def lose_silent_hosts_at_once(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda seen, since: seen.now - since >= timedelta(seconds=2)


def remove_unread_logs(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(name: Any, key: Any, found: Any, experiment: Any, seen: Any) -> Any:
        return original(name, key, replace(found, drained=not found.running), experiment, seen)

    return mutant


def take_late_for_never_started_to_converge(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(name: Any, key: Any, found: Any, experiment: Any, seen: Any) -> Any:
        found = replace(found, started=False, late=False) if found.late else found
        return original(name, key, found, experiment, seen)

    return mutant


def take_late_for_never_started_to_settle(original: Callable[..., Job]) -> Callable[..., Job]:
    def mutant(job: Job, clocks: HostClocks) -> Job:
        hosts = {
            name: replace(
                host,
                containers={
                    key: replace(found, started=False, late=False) if found.late else found
                    for key, found in host.containers.items()
                },
            )
            for name, host in clocks.observation.hosts.items()
        }
        return original(job, HostClocks(clocks.experiment, replace(clocks.observation, hosts=hosts)))

    return mutant


def start_without_the_environment(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_: True


def start_without_the_network(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_: True


def prepare_everywhere_at_once(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(experiment: Experiment, jobs: Any, seen: Any) -> Any:
        return (
            PrepareHost(job.host, experiment.id, experiment.subnet)
            for job in jobs
            if job.host in seen.hosts
            and seen.hosts[job.host].silent_since is None
            and experiment.id not in seen.hosts[job.host].networks
        )

    return mutant


def release_the_network_host_first(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(self: Any, experiments: Any) -> Any:
        forgotten = {identity: replace(one, network_host=None) for identity, one in experiments.items()}
        return original(self, forgotten)

    return mutant


def never_release(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, experiments: (a for a in original(self, experiments) if not isinstance(a, ReleaseHost))


def use_drained_hosts(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *rest: {name: why for name, why in original(*rest).items() if why is not HostExclusion.DRAINED}


def start_beside_what_is_left(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *rest: {name: why for name, why in original(*rest).items() if why is not HostExclusion.STALE}


def pass_over_labels(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_: True


def spread_over_any_hosts(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_: "any"


def start_beside_the_last_attempt(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_: False


def forget_hosts_that_left(original: Callable[..., Job]) -> Callable[..., Job]:
    return lambda experiment, job, host, seen: job


def forget_the_first_cause(original: Callable[..., Experiment]) -> Callable[..., Experiment]:
    def mutant(experiment: Experiment, seen: Any) -> Experiment:
        if experiment.verdict is not None and experiment.verdict.state is State.FINISHED:
            experiment = replace(experiment, verdict=None)
        return original(experiment, seen)

    return mutant


def share_from_anywhere(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(self: Any, experiment: Experiment, reference: str, host: Any) -> Any:
        return next((name for name in self._observation.hosts if name != host), None)

    return mutant


def run_what_the_tag_stands_for(original: Callable[..., Experiment]) -> Callable[..., Experiment]:
    return lambda experiment, seen: experiment


def blame_the_first_in_the_list(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(members: Any, *rest: Any) -> Any:
        first = min(member.ended_at for member in members)
        return original([member._replace(ended_at=first) for member in members], *rest)

    return mutant


def restart_graces(original: Callable[..., Job]) -> Callable[..., Job]:
    def mutant(job: Job, now: Any) -> Job:
        found = original(job, now)
        ends = found.ending_at is not None and found.state not in TERMINAL
        return replace(found, ending_at=now) if ends else found

    return mutant


def hand_over_in_part(original: Callable[..., Experiment]) -> Callable[..., Experiment]:
    def mutant(*rest: Any) -> Experiment:
        found = original(*rest)
        last = replace(found.jobs[-1], host=None, state=State.CREATED)
        return found if len(found.jobs) < 3 else replace(found, jobs=(*found.jobs[:-1], last))

    return mutant


def start_jobs_alone(original: Callable[..., Action]) -> Callable[..., Action]:
    return lambda host, key, seen: StartJob(host, key)


def forget_what_the_cluster_ended(original: Callable[..., Job]) -> Callable[..., Job]:
    return lambda job, found, seen: original(job, replace(found, ending=None), seen)


def take_every_host_for_one_of_riseml(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_: False


def learn_no_place(original: Callable[..., Job]) -> Callable[..., Job]:
    return lambda job, clocks: replace(original(job, clocks), address=None)


def believe_clusters_in_trouble(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(seen: Any, exclusions: Any) -> Any:
        hosts = {
            name: replace(host, queue=None if host.queue is None else replace(host.queue, trouble=""))
            for name, host in seen.hosts.items()
        }
        return original(replace(seen, hosts=hosts), exclusions)

    return mutant


def save_whatever_came_meanwhile(original: Callable[..., bool]) -> Callable[..., bool]:
    def mutant(self: Any, before: Experiment, after: Experiment, now: Any) -> bool:
        current = self.get_experiment(before.id).experiment.version
        return original(self, replace(before, version=current), after, now)

    return mutant


def save_without_events(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda before, after, now: iter(())


def find_kills_late(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(self: Any) -> Any:
        known = self._cache
        found = original(self)
        worlds = [known.get(one.id, one) if one.wanted is Wanted.KILL else one for one in found.experiments]
        return World(tuple(worlds))

    return mutant


def forget_what_has_a_place(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda experiment: False


def count_users_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda user, project: original(user, None)


def count_no_new_places(original: Callable[..., None]) -> Callable[..., None]:
    return lambda *_: None


def find_room_in_every_quota(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda amount, limit: limit is not None and amount > limit + 1


def borrow_before_others(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_: False


def await_no_copy(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda experiment, seen: False


def fill_no_output(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda experiment, seen: None


def inherit_nothing(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda host, experiment, parent: None


def wait_for_no_other(original: Callable[..., Experiment]) -> Callable[..., Experiment]:
    return lambda experiment, seen: experiment


def forgive_predecessors(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda experiment, seen: None


def read_unfinished_outputs(original: Callable[..., bool]) -> Callable[..., bool]:
    def mutant(predecessor: Any, seen: Any) -> bool:
        return original(replace(predecessor, has_input=False), replace(seen, predecessors=_without_inputs(seen)))

    return mutant


def _without_inputs(seen: Any) -> dict[Any, Any]:
    return {replace(one, has_input=False): found for one, found in seen.predecessors.items()}


def find_no_swarm_without_a_leader(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda hosts: []


def keep_every_host_for_the_head(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_: False


def give_helpers_no_grace(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda role: original(role)._replace(grace=0.0)


def forget_when_roles_ended(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda role: original(role)._replace(ended_at=0.0)


def let_a_ps_end(original: Any) -> Any:
    return SimpleNamespace(**{**vars(original), "fails": lambda part, code, error: code != 0 or bool(error)})


def forget_the_time_limit(original: Callable[..., None]) -> Callable[..., None]:
    return lambda supervisor, now: original(supervisor, supervisor.go_at)


def decide_anew(original: Callable[..., None]) -> Callable[..., None]:
    def mutant(supervisor: Any) -> None:
        supervisor.verdict = ""
        original(supervisor)

    return mutant


MUTANTS: dict[str, tuple[Change, ...]] = {
    "orphans are left": ((converge, "_converge_container", leave_orphans),),
    "a ps outlives its master": ((verdict, "_end_job", let_servers_run_on),),
    "a failed start is not noticed": ((settle, "_end_without_exit", give_up_on_starts_quietly),),
    "room is given twice": ((room, "free_after", forget_what_is_starting),),
    "a device is given twice": ((room, "free_after", forget_devices),),
    "a gang is placed in part": ((place, "give_place", place_what_fits),),
    "a kill does not end retrying": ((decide, "add_verdict", retry_after_a_kill),),
    "a failed master counts as success": ((settle, "_settle_exit", believe_in_success),),
    "closed before everything is gone": ((networks.OccupiedHosts, "include", close_at_once),),
    "closed before a host has answered": ((observation.Observation, "is_unknown", close_at_once),),
    "silent hosts are asked": ((decide, "converge", act_on_silent_hosts),),
    "silent is lost": ((observation.Observation, "is_over", lose_silent_hosts_at_once),),
    "logs are removed unread": ((converge, "_converge_container", remove_unread_logs),),
    "a late job is removed unread": ((converge, "_converge_container", take_late_for_never_started_to_converge),),
    "a late job has vanished": ((settle, "_settle_job", take_late_for_never_started_to_settle),),
    "jobs start before their environment": ((images.ImageLocations, "are_ready", start_without_the_environment),),
    "jobs start before their network": ((networks, "hosts_are_prepared", start_without_the_network),),
    "the network_host is not prepared first": ((networks, "find_preparations", prepare_everywhere_at_once),),
    "the network_host is released first": ((networks.OccupiedHosts, "find_releases", release_the_network_host_first),),
    "networks are never released": ((networks.OccupiedHosts, "find_releases", never_release),),
    "drained hosts are used": ((place, "find_exclusions", use_drained_hosts),),
    "what is left on a host is not removed first": ((place, "find_exclusions", start_beside_what_is_left),),
    "models of GPUs are passed over": (
        (candidates, "has_wanted_gpus", pass_over_labels),
        (fit, "has_wanted_gpus", pass_over_labels),
    ),
    "labels are passed over": ((candidates.CandidateHost, "has_labels", pass_over_labels),),
    "hosts need no swarm": ((candidates, "_find_link", spread_over_any_hosts),),
    "an attempt starts beside the last one": ((converge, "_earlier_attempt_runs", start_beside_the_last_attempt),),
    "a job starts while its network may go": ((converge, "_may_lose_network", start_beside_the_last_attempt),),
    "a host that left the pool is forgotten": ((settle, "_settle_unseen", forget_hosts_that_left),),
    "the first cause is forgotten": ((decide, "add_verdict", forget_the_first_cause),),
    "environments come from where they are not": ((images.ImageLocations, "_choose_source", share_from_anywhere),),
    "tags are not resolved": ((decide, "resolve_image", run_what_the_tag_stands_for),),
    "what ended first is not the cause": ((gang_rules, "find_first_cause", blame_the_first_in_the_list),),
    "one quiet job is a hang": ((verdict, "_is_idle", end_when_one_job_is_quiet),),
    "the last copy is forgotten": ((decide, "awaits_save", await_no_copy), (saving, "awaits_save", await_no_copy)),
    "jobs start before their output is filled": ((converge, "find_filling", fill_no_output),),
    "trials start without the files of their parents": ((saving, "InheritOutput", inherit_nothing),),
    "a swarm needs no leader": (
        (place, "list_leaderless", find_no_swarm_without_a_leader),
        (room, "list_leaderless", find_no_swarm_without_a_leader),
    ),
    "the head keeps hosts that it does not need": ((reserve.Reserve, "delays_nothing", keep_every_host_for_the_head),),
    "predecessors are passed over": ((decide, "hold_back", wait_for_no_other),),
    "failed predecessors are passed over": ((verdict, "find_lost_predecessor", forgive_predecessors),),
    "inputs are read while they are written": ((predecessors, "_has_ended", read_unfinished_outputs),),
    "every pass restarts the grace": ((decide, "_limit_future_job_times", restart_graces),),
}

ON_TEAMS: dict[str, tuple[Change, ...]] = {
    "quotas forget what has a place": ((quotas, "holds_place", forget_what_has_a_place),),
    "quotas of projects are passed over": ((quotas, "list_accounts", count_users_alone),),
    "a pass gives more than a quota has": ((quotas.QuotaLedger, "add", count_no_new_places),),
    "a quota is exceeded by one": ((quotas, "exceeds", find_room_in_every_quota),),
    "what borrows goes before others": ((quotas.QuotaLedger, "yields_to_others", borrow_before_others),),
}

ON_CLUSTERS: dict[str, tuple[Change, ...]] = {
    "a gang is handed over in part": ((place, "hand_over", hand_over_in_part),),
    "a cluster gets single jobs": ((converge, "_make_start", start_jobs_alone),),
    "what a cluster ended counts as a cause": ((settle, "_settle_exit", forget_what_the_cluster_ended),),
    "a role of a gang is retried alone": ((verdict, "takes_whole_gangs", take_every_host_for_one_of_riseml),),
    "the place is not learned": ((settle, "_settle_job", learn_no_place),),
    "a cluster that takes nothing gets gangs": ((place, "list_clusters", believe_clusters_in_trouble),),
    "an attempt starts beside the last one": MUTANTS["an attempt starts beside the last one"],
    "a kill does not end retrying": MUTANTS["a kill does not end retrying"],
    "a failed master counts as success": MUTANTS["a failed master counts as success"],
    "logs are removed unread": MUTANTS["logs are removed unread"],
    "orphans are left": MUTANTS["orphans are left"],
}

OF_THE_STORE: dict[str, tuple[Change, ...]] = {
    "a save overwrites what came meanwhile": ((ExperimentStore, "save_decision", save_whatever_came_meanwhile),),
    "a change has no event": ((rows, "_state_changes", save_without_events),),
    "what was read before is believed": ((ExperimentStore, "load_world", find_kills_late),),
}

OF_GANGS: dict[str, tuple[Change, ...]] = {
    "the supervisor gives helpers no grace": ((gang_roles.SupervisedRole, "as_member", give_helpers_no_grace),),
    "the supervisor forgets when roles ended": ((gang_roles.SupervisedRole, "as_cause", forget_when_roles_ended),),
    "the supervisor lets a ps end": ((gang_roles, "gang_rules", let_a_ps_end),),
    "the supervisor passes over max_duration": (
        (gang_supervisor.GangSupervisor, "_find_verdict", forget_the_time_limit),
    ),
    "the supervisor changes its verdict": ((gang_supervisor.GangSupervisor, "_keep_rules", decide_anew),),
    "the server forgets what the supervisor ended": ((settle, "_settle_exit", forget_what_the_cluster_ended),),
}
