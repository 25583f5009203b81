"""The supervisor of a gang: `python3 gang_supervisor.py FOLDER`, the script of one Slurm job.

It runs inside the allocation and outlives riseml's server and the user's laptop. It starts one srun for each role,
whose `role_wrapper` calls back over TCP, lets all roles start together once all are there, and ends them by
`gang_rules`, as `control.verdict` would.

FOLDER is on the shared file system. The server writes `gang.json` and `roles/ROLE.json` before it submits the job, and
appends to `orders` what is to stop. The supervisor takes the file `claim`, so that a second job of the same gang (whose
submission got no answer) ends at once; it replaces `state.json` at every change and writes `verdict.json` last.

`gang_roles` says when the end that a role reported counts. The exit code of srun proves nothing: it is 0 even when the
node of its step has died. A role that sends nothing for `SILENCE` seconds, or whose connection breaks before it has
reported its end, is lost. Behind a network partition it ends itself after that time and its grace. The supervisor
writes its end only then, so that no later attempt runs at the same time.

Every `BEAT` seconds the supervisor updates the modification time of `claim`, which shows the server that the supervisor
is alive: Slurm's controller counts a job as running even if its node was off and on again within seconds. This works on
a full disk, too.

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from riseml.executors.slurm import gang_lines, gang_records, gang_roles
from riseml.job_programs import gang_rules

BARRIER = 600.0  # seconds within which every role must call; a step may have to fetch a container image first
LOST_EXIT = 128 + signal.SIGKILL
_STRANGERS = 100  # the most connections that have not identified themselves
_TICK = 500  # milliseconds between two checks of orders and deadlines
_LATE_EXIT = 5.0  # seconds to wait for the ROLE.exit of a role whose connection broke
_SRUN_END = 10.0  # seconds for srun to end after its role
_WARNING = "Slurm's time limit of the job was reached"


class GangSupervisor:
    """One gang from the claim of its folder to its verdict."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(os.path.join(folder, "gang.json")) as file:
            self.plan = json.load(file)
        self.roles = [gang_roles.SupervisedRole(role) for role in self.plan["roles"]]
        self.ends = gang_roles.ReportedEnds()
        self.job = os.environ.get("SLURM_JOB_ID", "")
        self.began = time.time()  # for the record; the monotonic clock measures intervals
        self.waits_from = time.monotonic()  # for its roles
        self.go_at = 0.0  # when all started
        self.verdict = ""  # `gang_rules.FINISHED` or FAILED, by what happened first; empty: the gang goes on
        self.verdict_at = 0.0  # when it was found
        self.error = ""  # why the gang could not start, or was ended from outside
        self.stopped = ""  # why Slurm ends the job, or a step of it; empty: it does not, as far as is known
        self.orders_read = 0  # bytes
        self.beat_at = 0.0  # when this process last updated `claim`
        self.callers = []  # type: list[gang_lines.LineConnection]
        self.listener = socket.socket()
        self.signals, writer = os.pipe()
        for end in (self.signals, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def claim(self) -> bool:
        """Take the gang; return False when another job has it."""
        try:
            file = os.open(os.path.join(self.folder, "claim"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return False
        os.write(file, self.job.encode())
        os.close(file)
        return True

    def run(self) -> int:
        """Run the gang to its end; return 0 when it ended well."""
        self.listener.bind(("", 0))
        self.listener.listen(len(self.roles) + 8)
        self._write_state()
        for role in self.roles:
            self._start_srun(role)
        while not all(role.ended for role in self.roles):
            self._wait_for_events()
            self._settle_ends()
            self._read_orders()
            self._look_after_roles()
            self._keep_rules()
            self._touch_claim()
        self._end_sruns()
        verdict = self._describe_gang(dict(done=True, finished_at=time.time()))
        gang_records.write_record(self.folder, "verdict.json", verdict)
        return 0 if self.verdict == gang_rules.FINISHED and not self.error else 1

    def _start_srun(self, role: gang_roles.SupervisedRole) -> None:
        host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        wrapper = os.path.join(self.folder, "role_wrapper.py")
        ask = [self.plan["python"], "-S", wrapper, self.folder, role.name, host, str(self.listener.getsockname()[1])]
        command = ["srun"] + role.plan["srun"] + self.plan["prefix"] + ask
        with open(os.path.join(self.folder, role.name + ".srun"), "ab") as output:
            role.srun = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def _wait_for_events(self) -> None:
        """Wait briefly for connections, messages and signals, and handle them."""
        poll = select.poll()
        for descriptor in (self.signals, self.listener.fileno()):
            poll.register(descriptor, select.POLLIN)
        connections = {}  # type: dict[int, gang_lines.LineConnection]
        for lines in self.callers + [role.lines for role in self.roles if role.lines is not None]:
            connections[lines.connection.fileno()] = lines
            poll.register(lines.connection.fileno(), select.POLLIN)
        for descriptor, _ in poll.poll(_TICK):
            if descriptor == self.signals:
                self._take_signals()
            elif descriptor == self.listener.fileno():
                self._accept_caller()
            else:
                self._take_lines(connections[descriptor])

    def _accept_caller(self) -> None:
        """Accept a connection, unless all roles are there. With too many unidentified ones, close the oldest."""
        try:
            connection = self.listener.accept()[0]
        except OSError:  # the caller has gone, or too many files are open
            return
        if self.go_at:
            connection.close()
            return
        caller = gang_lines.LineConnection(connection, self.plan["token"], gang_lines.SUPERVISOR)
        try:
            caller.challenge()
        except OSError:
            connection.close()
            return
        self.callers.append(caller)
        if len(self.callers) > len(self.roles) + _STRANGERS:
            self.callers.pop(0).connection.close()

    def _take_signals(self) -> None:
        numbers = os.read(self.signals, 512)
        if signal.SIGUSR1 in numbers:
            self._end_all(_WARNING)
        if signal.SIGTERM in numbers:
            self.stopped = gang_records.find_stop_cause(self.folder) or gang_records.UNSAID
            self._end_all(self.stopped)

    def _take_lines(self, lines: "gang_lines.LineConnection") -> None:
        if lines.connection.fileno() < 0:  # closed since the poll, because of what came over another connection
            return
        messages = lines.receive()
        role = next((candidate for candidate in self.roles if candidate.lines is lines), None)
        if messages is None:
            lines.connection.close()
            if role is None:
                self.callers.remove(lines)
            else:
                role.lines = None
                role.lost_at = time.monotonic()
            return
        for message in messages:
            if role is None:
                role = self._identify_caller(lines, message)
                if role is None:
                    return
            elif "started" in message:
                role.record["started_at"] = time.time()
                role.began_at = time.monotonic()
                self._write_state()
            elif "error" in message:
                self._end_role(gang_roles.ReportedEnd(role, LOST_EXIT, message["error"]), started=False)
            elif "code" in message:
                self._take_end(gang_roles.ReportedEnd(role, message["code"], "", bool(message.get("outside"))))

    def _identify_caller(
        self, lines: "gang_lines.LineConnection", message: "dict[str, Any]"
    ) -> "gang_roles.SupervisedRole | None":
        """Return the role that calls; close the connection of any other caller."""
        self.callers.remove(lines)
        role = next((candidate for candidate in self.roles if candidate.name == message.get("role")), None)
        named = all(gang_lines.is_host(message.get(name)) for name in ("host", "node"))
        numbered = all(gang_lines.is_port(message.get(name)) for name in ("port", "door"))
        if role is None or not named or not numbered or role.lines is not None or self.go_at:
            lines.connection.close()
            return None
        role.lines = lines
        role.node = message["node"]
        role.address = "{}:{}".format(message["host"], message["port"])
        role.record.update(node=role.node, host=message["host"], port=message["port"], door=message["door"])
        if all(member.address for member in self.roles) and not self.error:
            self.go_at = time.monotonic()
            addresses = {member.name: member.address for member in self.roles}
            for member in self.roles:
                member.say({"go": addresses})
            self._write_state()
        return role

    def _look_after_roles(self) -> None:
        """Send heartbeats, and find roles that are lost or that srun could not start."""
        for role in self.roles:
            if role.end is not None:
                continue
            role.keep_alive()
            if role.lost_at and not self.go_at:
                self._settle_early_loss(role)
            elif role.lost_at:
                self._settle_lost(role)
            elif not role.address and role.srun is not None and role.srun_ended:
                self._settle_refusal(role)
        self._keep_barrier()

    def _keep_barrier(self) -> None:
        """End a gang when some of its roles have not called in time."""
        if not self.go_at and time.monotonic() - self.waits_from > BARRIER:
            missing = [role.name for role in self.roles if not role.address]
            words = [gang_records.read_last_words(self.folder, name) for name in missing]
            why = "; ".join(filter(None, words)) or "srun says nothing"
            self._fail_start(f"{', '.join(missing)} did not start in {BARRIER:.0f} s: {why}")

    def _settle_lost(self, role: gang_roles.SupervisedRole) -> None:
        """End a role whose connection broke: with its own record if there is one, else as lost."""
        exit_record = gang_records.read_exit(self.folder, role.name)
        if exit_record is not None:
            self._take_end(gang_roles.ReportedEnd(role, exit_record["exit_code"], exit_record["error"]))
            return
        late = _LATE_EXIT + (self.plan["stop_grace"] if role.silent else 0.0)
        memory = gang_records.ran_out_of_memory(self.folder, role.name)
        if time.monotonic() - role.lost_at > late or (memory and role.srun_ended):
            cause = gang_records.find_stop_cause(self.folder)
            if cause:
                self._end_all(cause)
            lost = "" if memory else f"node {role.node} does not answer any more, or its step was killed"
            self._end_role(gang_roles.ReportedEnd(role, LOST_EXIT, cause or lost))

    def _settle_early_loss(self, role: gang_roles.SupervisedRole) -> None:
        """End a gang that lost a role before all were there: the node is gone, or Slurm ends the job."""
        if role.srun_ended or time.monotonic() - role.lost_at > _LATE_EXIT:
            lost = f"{role.name} was lost before all roles were there"
            self._end_all(gang_records.find_stop_cause(self.folder) or lost)

    def _settle_refusal(self, role: gang_roles.SupervisedRole) -> None:
        """End a gang when srun could not start one of its roles."""
        cause = gang_records.find_stop_cause(self.folder)
        if cause:
            self._end_all(cause)
        else:
            words = gang_records.read_last_words(self.folder, role.name)
            self._fail_start(f"srun could not start {role.name}: {words}")

    def _take_end(self, end: gang_roles.ReportedEnd) -> None:
        """Take the reported end of a role: settle it now if this process caused it; else Slurm may be the cause."""
        end.role.close()
        if end.role.kill_at:
            self._end_role(end)
        else:
            self.ends.add(end)

    def _settle_ends(self) -> None:
        """Settle the reported ends for which all output of Slurm has arrived; read that output once for all of them."""
        ends = self.ends.take_ready()
        if ends:
            self.stopped = self.stopped or gang_records.find_stop_cause(self.folder)
        for end in ends:
            if self.stopped or end.outside:
                self.stopped = self.stopped or gang_records.UNSAID
                end.role.record["outside"] = self.stopped
                self._end_all(self.stopped)
            self._end_role(end)

    def _fail_start(self, reason: str) -> None:
        """End a gang that cannot start as a whole."""
        self.error = self.error or reason
        self._decide(gang_rules.FAILED)
        for role in self.roles:
            if not role.ended:
                role.say({"signal": "KILL"})
                self._end_role(gang_roles.ReportedEnd(role, LOST_EXIT, self.error), started="started_at" in role.record)

    def _end_role(self, end: gang_roles.ReportedEnd, started: bool = True) -> None:  # noqa: FBT001, FBT002  # 3.6 style
        """Note the end of a role."""
        role = end.role
        if role.ended:
            return
        role.end = end
        role.close()
        memory = gang_records.ran_out_of_memory(self.folder, role.name)
        role.record.update(exit_code=end.code, error=end.error, finished_at=end.at, oom=memory)
        if "started_at" in role.record:
            role.record["ran"] = max(0.0, end.reported_at - role.began_at)
        if not started:
            role.record.pop("started_at", None)
        self._write_state()

    def _keep_rules(self) -> None:
        """Find the verdict, and end the roles that have to end after it; kill roles that ignore SIGTERM."""
        now = time.monotonic()
        if self.go_at and not self.verdict:
            self._find_verdict(now)
        if self.verdict:
            members = [role.as_member() for role in self.roles]
            endings = gang_rules.find_endings(members, self.verdict, now - self.verdict_at)
            pairs = zip(self.roles, endings)  # noqa: B905  # 3.6 style
            self._end_roles([(role, ending) for role, ending in pairs if self._must_end(role, ending)])
        for role in self.roles:
            if role.kill_at and now >= role.kill_at and not role.ended and not role.killed:
                role.killed = True
                role.say({"signal": "KILL"})

    def _find_verdict(self, now: float) -> None:
        """Note the verdict, if something has happened that decides."""
        limit = self.plan.get("max_duration")
        over_at = self.go_at + limit if limit and now >= self.go_at + limit else None
        cause = gang_rules.find_first_cause([role.as_cause() for role in self.roles], over_at)
        if cause is not None:
            self._decide(cause.state)

    def _decide(self, verdict: str) -> None:
        """Note the verdict, unless there is one."""
        if not self.verdict:
            self.verdict = verdict
            self.verdict_at = time.monotonic()

    def _must_end(self, role: gang_roles.SupervisedRole, ending: str) -> bool:
        """Return True for a role that the rules end. After a failure, a role that is lost has a cause of its own."""
        return bool(ending) and (role.lines is not None or self.verdict == gang_rules.FINISHED)

    def _end_all(self, reason: str) -> None:
        """End every role, because Slurm ends the job; no role is the cause."""
        for role in self.roles:
            if role.end is None:
                role.record.setdefault("outside", reason)
        if not self.go_at:
            self._fail_start(reason)
            return
        self.error = self.error or reason
        self._decide(gang_rules.FAILED)
        self._end_roles([(role, "") for role in self.roles])

    def _end_roles(self, endings: "list[tuple[gang_roles.SupervisedRole, str]]") -> None:
        """Send SIGTERM to each of these roles once, and then record why; an empty text: the rules are not why."""
        going = [(role, ending) for role, ending in endings if role.end is None and not role.kill_at]
        for role, ending in going:
            if ending:
                role.record["ending"] = ending
            role.kill_at = time.monotonic() + self.plan["stop_grace"]
            role.say({"signal": "TERM"})
        if going:
            self._write_state()

    def _read_orders(self) -> None:
        """Carry out the orders of the server since the last check."""
        orders, self.orders_read = gang_records.read_orders(self.folder, self.orders_read)
        for order in orders:
            self._carry_out_order(order)

    def _carry_out_order(self, order: "dict[str, Any]") -> None:
        for role in self.roles:
            if role.name == order["role"] and not role.ended:
                if not self.go_at:
                    self._fail_start("it was stopped before it started")
                elif order["signal"] == "KILL":
                    self._end_roles([(role, "")])
                    role.kill_at = time.monotonic()
                else:
                    self._end_roles([(role, "")])

    def _touch_claim(self) -> None:
        """Show the server that this process is alive."""
        if time.monotonic() - self.beat_at < gang_lines.BEAT:
            return
        self.beat_at = time.monotonic()
        gang_records.touch_record(self.folder, "claim")

    def _end_sruns(self) -> None:
        """Wait for the sruns to end, and kill the rest: that kills their steps, too."""
        end = time.monotonic() + _SRUN_END
        for role in self.roles:
            if role.srun is not None:
                try:
                    role.srun.wait(max(0.1, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    role.srun.kill()

    def _describe_gang(self, more: "dict[str, Any]") -> "dict[str, Any]":
        roles = {role.name: role.record for role in self.roles}
        return dict(job=self.job, began=self.began, error=self.error, roles=roles, **more)

    def _write_state(self) -> None:
        gang_records.write_record(self.folder, "state.json", self._describe_gang({}))


def main() -> int:
    """Run the gang of a folder, unless another job does."""
    supervisor = GangSupervisor(sys.argv[1])
    if not supervisor.claim():
        print("another job runs this gang", flush=True)
        return 0
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
