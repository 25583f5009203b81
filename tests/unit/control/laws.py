"""The laws of the control loop. A witness checks every save and every action; `Laws.check` checks the state after every
step. An assertion names the law that it checks.

Laws:
 1. `decide` is pure: the same input gives the same decision.
 2. A terminal state stays terminal.
 3. A gang gets its place as a whole or not at all.
 4. A silent host gets no action, and a silent host is not lost before its deadline.
 5. Each attempt of a job has exactly one container.
 6. At rest, the containers are those of the records.
 7. A gang that fits runs.
 8. Nothing of a finished experiment runs.
 9. A ps never outlives its master and workers.
10. A container is removed only when its log is drained.
11. Every state has a reason, and the first cause is kept apart from what follows from it.
12. No accepted experiment is lost.
13. A roll-up of nothing is an error, never a success.
14. A new attempt starts only when the old one was seen dead, or its host was lost.
15. A pass without news writes nothing.
16. The tag of an image is resolved once: all hosts and all attempts run the same image for a role.
17. An experiment is ended as idle only when all its jobs that are left were quiet for its `idle_timeout`.
18. A gang goes to a host with a queue of its own as a whole, starts there as one thing, and its place is learned there.
19. With `save`, an experiment is closed after its last copy, unless the host that has the output does not answer.
20. With `restore`, no job of an attempt starts before its output is filled.
21. On a network across hosts, no job starts on a host before the containers of its experiment that have ended there are
    removed.
22. A gang gets several hosts only while a manager of their swarm has a leader, and no other manager is asked for its
    network.
23. No host idles that cannot help the head of the queue: what waits behind the head runs there, when the head starts as
    early without that host in whatever order the running jobs end.
24. Nothing is concluded of a job as long as its host does not say how the job is: its record stays, and it gets no
    action.
25. No job of a trial that continues another one starts before its output has the files of that one.
26. No pass gives an experiment a place beyond the quota of its user or of its team project.
27. An experiment that borrows starts only while none of another user waits for room, and nothing that runs is stopped
    for a quota.
28. An experiment gets its first place only after all that it waits for has ended, and has FINISHED where it must have;
    where its input is read, nothing is left of it on any host. Else it ends without a place.

Invariants:
 I1. No accepted experiment is lost or stuck.
 I2. There is one container for each attempt of a job, over all hosts.
 I3. Nothing of an ended experiment runs.
 I4. A ps never outlives its master, and the exit of a job is noticed.
 I5. A place is empty or whole, and no host runs more than it holds.
 I6. Every container belongs to an open record.
 I7. At most one attempt of an experiment has running containers.
 I8. Final states are final, and each change of state is one event.
 I9. A success was seen: exit code 0 of the job that decides. Or a search has asked for the end, or a loss was lost
     whose riseml.yml wants success then. A failure for a lost loss is one that riseml.yml wants.
I10. After a kill, or after a search stopped its trial, the attempt number does not grow.
I11. A stored log is a prefix of what was written (tests of the store).
I12. What is held on a host is the sum of the jobs that have a place there.
I13. No network or helper is left when its experiment is closed.
I14. A reply holds only what the caller may see (tests of the API).
I15. A second pass without news makes no call that writes, and no save.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

from riseml.base.names import HostName, JobName, job_type
from riseml.base.states import PLACED, TERMINAL, JobDuty, Network, Reason, State, Wanted
from riseml.control.actions import Action, CopyImage, PrepareHost, ReleaseHost, RemoveJob, StartGang, StartJob, StopJob
from riseml.control.decide import takes_place
from riseml.control.observation import Observation
from riseml.control.placement.candidates import CandidateHost, find_candidates, find_exclusions
from riseml.control.placement.fit import Gang, find_hosts, make_gang
from riseml.control.placement.free import FreeResources, find_held_jobs, free_after
from riseml.control.placement.leaders import list_leaderless
from riseml.control.quotas import Account, AccountKind
from riseml.model import Experiment, HostObservation, Job, JobKey, Launch, World
from riseml.spec.config.types import NanRule, RetryScope
from tests.support.memory_cluster import MemoryCluster
from tests.unit.control.simulation import LOST_AFTER, Simulation, Witness

MOST_ENDS = 7
"""Jobs whose orders of ends law 23 tries: each doubles them."""


def gang_of(experiment: Experiment) -> list[Job]:
    """Return every job but the build job."""
    return [job for job in experiment.jobs if job.part is not JobDuty.PREPARES]


@dataclass
class Laws(Witness):
    """Raises an AssertionError for every save and every action that breaks a law."""

    simulation: Simulation
    dark_since: dict[HostName, float] = field(default_factory=dict)  # elapsed seconds when it fell silent or left
    killed: dict[int, int] = field(default_factory=dict)  # id of the experiment -> its attempt when it was killed
    given_up: set[JobKey] = field(default_factory=set)  # jobs that ended because their host was lost
    images: dict[tuple[int, str], str] = field(default_factory=dict)  # what each role runs, by its first launch
    checked_launches: dict[HostName, int] = field(default_factory=dict)  # how many launches of a host `images` has

    def saves(self, old: Experiment, new: Experiment, seen: Observation) -> None:
        assert old.state not in TERMINAL or new.state is old.state, "2: terminal stays terminal"
        assert not old.closed, "closed is closed"
        assert new.jobs, "13: a roll-up of nothing"
        assert new.resolved[: len(old.resolved)] == old.resolved, "16: resolved once"
        assert len(dict(new.resolved)) == len(new.resolved), "16: resolved once"
        self._keeps_the_first_cause(old, new)
        self._finds_the_first_cause(old, new)
        self._may_be_idle(old, new, seen)
        gang = gang_of(new)
        placed = [job.host is not None for job in gang]
        assert all(placed) if new.placed_at is not None else new.state in TERMINAL or not any(placed), "3, I5: whole"
        if new.state is State.FINISHED:
            assert all(job.state in TERMINAL for job in new.jobs), "8: nothing of it goes on"
            deciders = [job for job in gang if job.part is JobDuty.DECIDES]
            assert deciders, "13"
            stopped = new.reason is Reason.STOPPED_EARLY
            assert not stopped or new.wanted is not Wanted.RUN, "I9: nothing stops early unless its search asks"
            lost = new.reason is Reason.NOT_FINITE
            assert stopped or lost or all(job.exit_code == 0 for job in deciders), "I9: success was seen"
        if new.state in TERMINAL and new.reason is Reason.NOT_FINITE:
            wanted = {NanRule.STOP: State.FINISHED, NanRule.FAIL: State.FAILED}
            assert new.id in self.simulation.not_finite, "I9: its loss was lost"
            assert new.state is wanted.get(new.plan.policy.on.nan), "I9: its riseml.yml wants this end"
        if new.closed:
            self._is_over(new, seen)
            self._is_saved(new, seen)
        if takes_place(old, new):
            self._place_is_allowed(new, seen)
            self._predecessors_have_ended(new)
            self._quotas_hold(new, seen)
        for before, after in zip(old.jobs, new.jobs, strict=True):
            self._job_goes_on(before, after, new)
            self._has_said_how_it_is(before, after, old, seen)

    def acts(self, action: Action, seen: Observation) -> None:
        host = seen.hosts.get(action.host)
        assert host is not None, "a missing host gets no action"
        assert host.silent_since is None, "4: a silent host gets no action"
        if isinstance(action, StartJob | StopJob | RemoveJob):
            found = host.containers.get(action.key)
            assert found is None or not found.late, "24: its host does not say how it is"
        match action:
            case CopyImage(_, _, reference, source):
                assert seen.hosts[source].silent_since is None, "4"
                assert seen.hosts[source].images[reference].present, "the source has the environment"
                assert source != action.host
            case StartJob(_, key):
                assert host.queue is None, "18: a host with a queue of its own gets whole gangs"
                self._start_is_allowed(key, host, seen)
            case StartGang(name, identity, attempt):
                self._hand_over_is_allowed(name, identity, attempt, seen)
            case RemoveJob(_, key):
                found = host.containers[key]
                unread = found.started and not found.running and not found.drained
                assert not unread or key.experiment not in self.simulation.open, "10: its log was not read to its end"
            case PrepareHost(name, identity):
                network_host = self.simulation.stored[identity].network_host
                assert name != network_host or not host.leaderless, "22: no network can be made now"
                if network_host not in (None, name):
                    assert identity in seen.hosts[network_host].networks, "the network_host first"
            case ReleaseHost(name, identity):
                self._release_is_allowed(name, identity, seen)

    def check(self) -> None:
        """Check what must hold after every step."""
        keys = [key for host in self.simulation.hosts.values() for key in host.containers]
        assert len(keys) == len(set(keys)), "5, I2: one container for each attempt"
        held: dict[HostName, list[Job]] = {}
        subnets: list[str] = []
        for experiment in self.simulation.open.values():
            if experiment.placed_at is None or experiment.state in TERMINAL:
                continue
            if experiment.subnet:
                subnets.append(experiment.subnet)
            for job in gang_of(experiment):
                if job.host is not None and job.state in PLACED:
                    held.setdefault(job.host, []).append(job)
        assert len(subnets) == len(set(subnets)), "no subnet twice"
        for name, host in self.simulation.hosts.items():
            if isinstance(host, MemoryCluster):
                self._gangs_are_whole(host)
            else:
                self._host_is_not_overfull(host.capacity.cpus, host.capacity.gpus, held.get(name, []))
            launches = {launch.key: launch for launch in host.launches}
            running = [launches[key] for key, found in host.containers.items() if found.running]
            assert sum(launch.resources.cpus for launch in running) <= host.capacity.cpus, (
                "I5: more runs than the host holds"
            )
            self._no_gpu_twice(running)
        self._runs_one_image()
        for identity, attempt in self.killed.items():
            jobs = self.simulation.stored[identity].jobs
            assert max(job.attempt for job in jobs) == attempt, "I10: stop wins"

    def _runs_one_image(self) -> None:
        for name, host in self.simulation.hosts.items():
            for launch in host.launches[self.checked_launches.get(name, 0) :]:
                on_cluster = isinstance(host, MemoryCluster)  # where jobs have no images
                assert launch.image.resolved or on_cluster, "16: no job runs what a tag stands for at its start"
                key = (launch.key.experiment, job_type(launch.key.job))
                image = self.images.setdefault(key, launch.image.reference)
                assert image == launch.image.reference, "16: one image for each role"
            self.checked_launches[name] = len(host.launches)

    def check_lost(self, name: HostName) -> None:
        """Check that every job of a host ended that was missing for much longer than the deadline."""
        for experiment in self.simulation.open.values():
            for job in experiment.jobs:
                assert job.host != name or job.state in TERMINAL or self._is_the_only_host(name), "I1: its host is lost"

    def check_no_host_idles(self, world: World, seen: Observation) -> None:
        """23: check what the experiments behind the head could get without delaying it, by trying every order of ends.

        Args:
            world: the records after a pass.
            seen: what the pass saw.
        """
        head = next((one for one in world.experiments if one.reason is Reason.NEXT), None)
        waiting = [one for one in world.experiments if one.reason is Reason.NO_ROOM and one.state is State.PENDING]
        if (
            head is None
            or not waiting
            or seen.unseen
            or find_exclusions({one.id: one for one in world.experiments}, seen)
        ):
            return
        if any(isinstance(action, ReleaseHost) for action in seen.busy):
            return
        candidates = find_candidates(seen, (), list_leaderless(seen.hosts))
        held = {name: jobs for name, jobs in find_held_jobs(world.experiments).items() if name in candidates}
        ends = [(name, job) for name, jobs in held.items() for job in jobs]
        if len(ends) > MOST_ENDS:
            return
        gang = _gang_of_needs(head)
        orders = [_free_after(seen, candidates, held, ended) for ended in product((False, True), repeat=len(ends))]
        starts = [free for free in orders if find_hosts(gang, free, candidates) is not None]
        if not starts:
            return
        for one in waiting:
            need = _gang_of_needs(one)
            for name, free in _free_after(seen, candidates, held, (False,) * len(ends)).items():
                if find_hosts(need, {name: free}, candidates) is None:
                    continue
                less = [{**order, name: order[name].without(need.whole)} for order in starts]
                delays = any(find_hosts(gang, order, candidates) is None for order in less)
                assert delays, (
                    f"23: {name} idles for {head.id}, which needs it in no order of ends, while {one.id} waits"
                )

    def _is_the_only_host(self, name: HostName) -> bool:
        return set(self.simulation.hosts) - {name} <= set(self.dark_since)

    def _is_over(self, closed: Experiment, seen: Observation) -> None:
        identity = closed.id
        for host in seen.hosts.values():
            if host.silent_since is None:
                assert identity not in host.networks, "closed with a network left"
                assert not any(key.experiment == identity for key in host.containers), "closed with a container left"
        for name in (
            {job.host for job in closed.jobs if job.host is not None} - seen.hosts.keys() - self.simulation.absent
        ):
            if self.simulation.elapsed - self.dark_since.get(name, self.simulation.elapsed) < LOST_AFTER:
                real = self.simulation.hosts[name]
                assert not any(key.experiment == identity for key in real.containers), "closed before a host answered"

    def _host_is_not_overfull(self, cpus: float, gpus: tuple[str, ...], jobs: list[Job]) -> None:
        assert sum(job.resources.cpus for job in jobs) <= cpus, "I12: more is held than the host has"
        devices = [gpu for job in jobs for gpu in job.gpus]
        assert len(devices) == len(set(devices)), "no device twice"
        assert set(devices) <= set(gpus), "only devices that the host has"
        assert all(len(job.gpus) == job.resources.gpus for job in jobs)
        ports = [job.port for job in jobs if job.port is not None]
        assert len(ports) == len(set(ports)), "no port twice on a host"

    def _no_gpu_twice(self, running: list[Launch]) -> None:
        devices = [gpu for launch in running for gpu in launch.gpus]
        assert len(devices) == len(set(devices)), "no device is used by two containers"

    def _keeps_the_first_cause(self, old: Experiment, new: Experiment) -> None:
        before, after = old.verdict, new.verdict
        if before is None or after is None or before.again:
            return
        assert (before.state, before.reason, before.job) == (after.state, after.reason, after.job), "11: first cause"

    def _finds_the_first_cause(self, old: Experiment, new: Experiment) -> None:
        """Check that of several ends that one pass sees, the first one decides."""
        verdict = new.verdict
        if old.verdict is not None or verdict is None or verdict.job is None:
            return
        key = new.key_of(next(job for job in new.jobs if job.name == verdict.job))
        found = [host.containers[key] for host in self.simulation.hosts.values() if key in host.containers]
        if verdict.reason is not Reason.HOST_LOST:  # of a host that does not answer, the server cannot see it
            assert all(one.ending is None for one in found), "11: a job that its cluster ended is not a cause"
        ends = {
            job.name: job.ended_at for job in gang_of(new) if job.state is State.FAILED and job.ended_at is not None
        }
        own = next(job.ended_at for job in new.jobs if job.name == verdict.job)
        if own is not None:
            later = [name for name, at in ends.items() if at < own and self._ends_badly(new, name)]
            assert not later, f"11: {later} ended before {verdict.job}"

    def _may_be_idle(self, old: Experiment, new: Experiment, seen: Observation) -> None:
        if new.verdict is None or new.verdict.reason is not Reason.IDLE or old.verdict is not None:
            return
        limit = new.plan.policy.idle_timeout
        assert limit is not None, "17: it has no idle_timeout"
        left = [job for job in gang_of(old) if job.state not in TERMINAL and job.part is not JobDuty.WATCHES]
        ended = {job.name for job in gang_of(new) if job.state in TERMINAL}
        for job in left:
            if job.name not in ended:
                assert job.host is not None, "17: a job has not begun"
                assert seen.hosts[job.host].silent_since is None, "17: a silent host says nothing about its jobs"
                assert seen.quiet.get(new.key_of(job), 0.0) >= limit, "17: a job is active"

    def _ends_badly(self, experiment: Experiment, name: JobName) -> bool:
        return any(job.name == name and job.part is not JobDuty.WATCHES for job in experiment.jobs)

    def _job_goes_on(self, before: Job, after: Job, experiment: Experiment) -> None:
        if after.attempt == before.attempt:
            assert before.state not in TERMINAL or before == after, "I8: the record of an ended job does not change"
            if after.state in TERMINAL and before.host in self.dark_since and before.part is not JobDuty.PREPARES:
                self._was_lost(before, experiment)
        else:
            if before.host in self.dark_since:
                self._was_lost(before, experiment)
            assert after.attempt == before.attempt + 1
            assert experiment.id not in self.killed, "I10"

    def _has_said_how_it_is(self, before: Job, after: Job, experiment: Experiment, seen: Observation) -> None:
        host = None if before.host is None else seen.hosts.get(before.host)
        if host is None or host.silent_since is not None or before.state in TERMINAL:
            return
        found = host.containers.get(experiment.key_of(before))
        is_over = after.state in TERMINAL or after.attempt != before.attempt
        assert found is None or not found.late or not is_over, "24: its host does not say how it is"

    def _was_lost(self, job: Job, experiment: Experiment) -> None:
        """Note that a job ended because its host was lost, and check that it was."""
        if job.host is not None and job.state not in TERMINAL:
            gone = self.simulation.elapsed - self.dark_since[job.host]
            assert gone >= LOST_AFTER, "14: silent is not lost"
            self.given_up.add(JobKey(experiment.id, job.name, job.attempt))

    def _place_is_allowed(self, new: Experiment, seen: Observation) -> None:
        gang = gang_of(new)
        hosts = {job.host: seen.hosts[job.host] for job in gang if job.host is not None}
        for name, host in hosts.items():
            assert host.silent_since is None, "not on a silent host"
            assert host.taking, "not on a drained host"
            for key, found in () if host.queue else host.containers.items():
                assert not found.running or self._is_recorded(key, name), "the host still runs jobs of earlier attempts"
        for job in gang:
            if job.host is not None:
                assert all(hosts[job.host].labels.get(n) == v for n, v in job.resources.labels), "labels"
                names = [hosts[job.host].devices[one].name.lower() for one in job.gpus]
                assert all(job.resources.gpu in name for name in names), "the model of its GPUs"
        if any(host.queue is not None for host in hosts.values()):
            assert len(hosts) == 1, "18: a whole gang goes to one cluster"
            assert not any(host.queue.trouble for host in hosts.values() if host.queue), "not to one that takes nothing"
            return
        addresses = [(job.address, job.port) for job in gang]
        assert len(addresses) == len(set(addresses)), "every job has an address of its own"
        if len(hosts) == 1:
            assert new.network is not Network.OVERLAY
            assert new.network_host is None
        elif seen.network is Network.OVERLAY:
            assert new.network is Network.OVERLAY
            swarms = {host.swarm for host in hosts.values()}
            assert len(swarms) == 1, "one swarm"
            assert "" not in swarms
            assert new.network_host is not None
            assert seen.hosts[new.network_host].manager
            assert not seen.hosts[new.network_host].leaderless, "22: no network can be made now"
        else:
            assert new.network is Network.HOST

    def _predecessors_have_ended(self, new: Experiment) -> None:
        """28, by the records as they are stored, and not as the pass saw them."""
        for one in new.plan.after if new.started_at is None else ():
            found = self.simulation.stored[one.record]
            assert found.state in TERMINAL, f"28: {new.id} starts, and {found.id} goes on"
            assert one.accepts_any_end or found.state is State.FINISHED, f"28: {new.id} starts, and {found.id} failed"
            assert found.closed or not one.has_input, f"28: {new.id} reads what {found.id} may still write"

    def _quotas_hold(self, new: Experiment, seen: Observation) -> None:
        """26, 27: the amounts are added up from the plans here, and not as the loop does it."""
        if seen.team is None:
            return
        others = [one for one in self.simulation.open.values() if one.id != new.id and _has_place(one)]
        if new.plan.policy.priority < 0:
            return
        counted = [one for one in (*others, new) if one.plan.policy.priority >= 0]
        for kind, name in (("user", new.owner.user), ("project", new.team_project)):
            limits = seen.team.quotas.find_limits(Account(AccountKind(kind), name or ""))
            mine = [one for one in counted if (one.owner.user if kind == "user" else one.team_project) == name]
            needs = [job.resources for one in mine for job in gang_of(one)]
            sums = {
                "gpus": sum(need.gpus for need in needs),
                "cpus": sum(need.cpus for need in needs),
                "mem": sum(need.mem for need in needs),
                "running": len(mine),
            }
            for resource, amount in sums.items() if name else ():
                limit = getattr(limits, resource)
                needed = resource == "running" or any(getattr(job.resources, resource) for job in gang_of(new))
                assert limit is None or not needed or amount <= limit + 1e-6, (
                    f"26: {kind} {name} has {amount} of {limit} {resource}"
                )

    def check_no_early_loan(self, before: World, after: World) -> None:
        """27: check that what got a place in this pass, and borrows, was not before another user's experiment."""
        placed = {one.id for one in before.experiments if one.placed_at is not None}
        heads = [one.owner.user for one in after.experiments if one.reason is Reason.NEXT]
        for one in after.experiments:
            new = one.placed_at is not None and one.id not in placed
            if new and one.plan.policy.priority < 0:
                assert not set(heads) - {one.owner.user}, f"27: {one.id} borrows while another user waits"

    def _is_recorded(self, key: JobKey, name: HostName) -> bool:
        experiment = self.simulation.open.get(key.experiment)
        return experiment is not None and any(
            (job.name, job.attempt, job.host) == (key.job, key.attempt, name) and job.state not in TERMINAL
            for job in experiment.jobs
        )

    def _is_saved(self, experiment: Experiment, seen: Observation) -> None:
        host = next((job.host for job in gang_of(experiment) if job.host is not None), None)
        if experiment.plan.policy.save is None or experiment.started_at is None or host is None:
            return
        answers = host in seen.hosts and seen.hosts[host].silent_since is None
        attempt = min(job.attempt for job in gang_of(experiment))
        known = seen.saves.get(experiment.id)
        assert not answers or (known is not None and known.last >= attempt), "19: its last copy first"

    def _start_is_allowed(self, key: JobKey, host: HostObservation, seen: Observation) -> None:
        experiment = self.simulation.stored[key.experiment]
        save = experiment.plan.policy.save
        assert save is None or not save.restore or key.experiment in seen.filled, "20: its output first"
        lineage = experiment.plan.lineage
        is_first = lineage is None or lineage.parent is None
        assert is_first or key.experiment in seen.inherited, "25: the files of its parent first"
        gang = gang_of(experiment)
        assert key.experiment in host.networks, "the host has the network of the experiment"
        if experiment.network is Network.OVERLAY:
            mine = [found for other, found in host.containers.items() if other.experiment == key.experiment]
            assert not any(one.started and not one.running for one in mine), "21: what has ended is removed first"
        alone = experiment.plan.policy.retry.scope is RetryScope.ROLE
        for name, other in self.simulation.hosts.items():
            for older, found in other.containers.items():
                if older.experiment != key.experiment or not found.running or older.attempt >= key.attempt:
                    continue
                if not alone or older.job == key.job:
                    lost = name in self.dark_since and older in self.given_up
                    assert lost, "14, I7: the last attempt was not seen dead, nor was its host lost"
        attempts = {job.attempt for job in gang}
        begun = any(
            other.experiment == key.experiment and other.attempt in attempts
            for one in seen.hosts.values()
            for other in one.containers
        )
        if begun or len(attempts) > 1:
            return
        for job in gang:
            if job.host is None or job.state is not State.STARTING:
                continue
            image = seen.hosts[job.host].images.get(experiment.image_of(job.name).reference)
            assert image is not None, "the environment first, everywhere"
            assert image.present, "the environment first, everywhere"
            assert key.experiment in seen.hosts[job.host].networks, "the network first, everywhere"
        if experiment.network_host is not None:
            assert key.experiment in seen.hosts[experiment.network_host].networks, "the network_host first"

    def _hand_over_is_allowed(self, name: HostName, identity: int, attempt: int, seen: Observation) -> None:
        assert seen.hosts[name].queue is not None, "18: only a cluster starts gangs"
        gang = gang_of(self.simulation.stored[identity])
        assert {(job.host, job.attempt) for job in gang} == {(name, attempt)}, "18: the gang of one attempt, whole"
        for job in gang:
            self._start_is_allowed(JobKey(identity, job.name, attempt), seen.hosts[name], seen)

    def _gangs_are_whole(self, cluster: MemoryCluster) -> None:
        """18: the roles of a gang wait together and start together, and each knows where it runs."""
        for gang in cluster.gangs.values():
            found = [cluster.containers.get(role.launch.key) for role in gang.roles]
            there = [one for one in found if one is not None and not one.error]
            assert len({one.started for one in there}) <= 1, "18: a gang starts as one thing"
        for experiment in self.simulation.open.values():
            for job in gang_of(experiment):
                if job.host == cluster.name and job.state is State.RUNNING:
                    assert job.address is not None, "18: the place is learned from the cluster"
                    assert job.port is not None, "18: the place is learned from the cluster"

    def _release_is_allowed(self, name: HostName, identity: int, seen: Observation) -> None:
        assert not any(key.experiment == identity for key in seen.hosts[name].containers), "it is still used"
        experiment = self.simulation.open.get(identity)
        if experiment is None:
            return
        if (seen.hosts[name].networks[identity] or None) != experiment.subnet:
            return  # an earlier attempt left it
        assert not any(job.host == name and job.state in PLACED for job in gang_of(experiment)), "it is still needed"
        if experiment.network_host == name:
            others = [host for other, host in seen.hosts.items() if other != name and host.silent_since is None]
            for other in others:
                assert identity not in other.networks, "the network_host last"
                assert not any(key.experiment == identity for key in other.containers), "the network_host last"


def _has_place(experiment: Experiment) -> bool:
    return experiment.placed_at is not None and experiment.state not in TERMINAL


def _gang_of_needs(experiment: Experiment) -> Gang:
    return make_gang([job.resources for job in gang_of(experiment)])


def _free_after(
    seen: Observation,
    candidates: Mapping[HostName, CandidateHost],
    held: Mapping[HostName, list[Job]],
    ended: tuple[bool, ...],
) -> dict[HostName, FreeResources]:
    """Return what is free on each candidate after some of its jobs have ended, in the order of `held`."""
    over = iter(ended)
    left = {name: [job for job in jobs if not next(over)] for name, jobs in held.items()}
    return {name: free_after(seen.hosts[name].capacity, left.get(name, ())) for name in candidates}


def count_attempts(simulation: Simulation, identity: int) -> int:
    """Return the latest attempt of an experiment."""
    return max(job.attempt for job in simulation.stored[identity].jobs)
