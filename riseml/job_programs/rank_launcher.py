"""Runs one script in several processes of a job, and lets the jobs of a gang meet: at barriers, and for Horovod.

`python3 -IS -c TEXT ORDER`, where ORDER is JSON:

    {"command": ["/bin/sh", "-ec", "python train.py"], "first": 2,
     "ranks": [{"HOROVOD_RANK": "2"}, {"HOROVOD_RANK": "3"}],
     "job": "worker.2", "node": 1, "nodes": 2, "address": "$HOROVOD_GLOO_RENDEZVOUS_ADDR:2222"}

Without `address` the processes of this job have barriers among themselves only. With it, the launcher of node 0 listens
there. Every launcher has one connection to it, and reports over it which line its processes have reached and what
failed. The same port is Horovod's rendezvous: GET, PUT and DELETE of /scope/key. So the launcher knows which ranks have
met, and a training in which every process runs alone fails. A job that has lost the others ends after `"patience": 30`
seconds, unless the server ends it first.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from riseml.job_programs.rank_meeting import ENDED, GONE, Rendezvous, RendezvousServer, keep_alive
from riseml.job_programs.rank_output import CombinedOutput, copy_output

TELL = 8  # descriptor of a shell: it reports the end of a line
HEAR = 9  # descriptor of a shell: it lets the shell go on
ANSWER_TIME = 5.0  # seconds for the first launcher to say what failed first
CASCADE_TIME = 10.0  # seconds that a job which failed after another one waits to be stopped
END_TIME = 2.0  # seconds between SIGTERM and SIGKILL for the other processes of a job that failed
PATIENCE = 30.0  # seconds after which a job that has lost the others ends: the server needs less to end it
BETWEEN = 0.1  # seconds between two checks of a group: this process cannot wait for processes that are not its children
TREE_MARKER = "RISEML_JOB_KEY"  # a variable of jobs without containers: there, riseml sends SIGTERM to every process


class Launcher:
    """Starts the processes of one job, and ends with their exit code. Every event goes through one queue."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.node: int = order.get("node", 0)
        self.events: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self.ranks: dict[int, subprocess.Popen[bytes]] = {}  # rank -> its shell, until it has ended
        self.copies: dict[int, list[threading.Thread]] = {}  # rank -> the threads that copy its output
        self.pipes: dict[int, int] = {}  # rank -> the pipe over which its shell gets the order to go on
        self.waiting: set[int] = set()  # ranks that have ended the line
        self.line = 0
        self.outputs = [CombinedOutput(sys.stdout.buffer), CombinedOutput(sys.stderr.buffer)]
        self.link: socket.socket | None = None
        self.meeting: Rendezvous | None = None
        self.failure: tuple[int, int] | None = None  # rank and exit code of the first process here that failed
        self.cause: dict[str, Any] | None = None  # what failed first in the gang
        self.alarm: threading.Timer | None = None
        self.stopping = False

    def run(self) -> int:
        """Return the exit code of the job."""
        signal.signal(signal.SIGTERM, self.handle_stop)
        for number in (TELL, HEAR):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)  # so that nothing else gets these numbers
        threading.Thread(target=self.connect, daemon=True).start()
        code: int | None = None
        while code is None:
            event, *details = self.events.get()
            code = getattr(self, f"on_{event}")(*details)
        self.end_ranks()
        if code == 0 and self.meeting is not None:
            self.wait_for_others(self.meeting)
        return int(code)

    def handle_stop(self, *_: object) -> None:
        """Handle the order to stop before all other events: a process that ends from now on has not failed."""
        self.stopping = True
        self.events.put(("stop",))

    # The meeting

    def connect(self) -> None:
        """Join the meeting, and queue its messages as events."""
        if "address" not in self.order:
            self.tell({"reached": 0})
            return
        host, _, port = os.path.expandvars(self.order["address"]).rpartition(":")
        place = (host, int(port))
        if self.node == 0 and not self.open_meeting(place):
            return
        while self.link is None:
            try:
                self.link = socket.create_connection(place)
            except OSError:
                threading.Event().wait(0.1)
        keep_alive(self.link)
        self.link.sendall(b"JOIN %d HTTP/1.0\r\n\r\n" % self.node)
        self.tell({"reached": 0})
        with contextlib.suppress(OSError, ValueError):
            for line in self.link.makefile("rb"):
                self.events.put(next(iter(json.loads(line.decode()).items())))
        self.events.put(("cause", {"node": 0, "text": GONE, "lost": True}))

    def open_meeting(self, place: tuple[str, int]) -> bool:
        """Listen for the launchers of all jobs. Return False if the port is in use."""
        self.meeting = Rendezvous(self.order["nodes"], self.order["nodes"] * len(self.order["ranks"]))
        try:
            threading.Thread(target=RendezvousServer(place, self.meeting).serve_forever, daemon=True).start()
        except OSError as error:
            self.events.put(("cause", {"node": 0, "text": f"cannot listen at {self.order['address']}: {error}"}))
            return False
        return True

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to the meeting; answer it here when there is no meeting."""
        if self.link is not None:
            with contextlib.suppress(OSError):
                self.link.sendall(json.dumps(message).encode() + b"\n")
        elif "failed" in message:
            self.events.put(("cause", message["failed"]))
        else:
            self.events.put(("go", message["reached"]))

    def wait_for_others(self, meeting: Rendezvous) -> None:
        """Keep the meeting open until the other launchers have heard that they may end."""
        for _ in range(100):
            if not [node for node in list(meeting.links) if node]:
                return
            threading.Event().wait(0.1)

    # Events: each returns the exit code of the job once it has one

    def on_go(self, line: int) -> int | None:
        if line == ENDED:
            return 0
        if not self.stopping:
            for at, variables in enumerate(self.order["ranks"] if line == 0 else ()):
                self.start(self.order["first"] + at, variables)
            for rank in self.waiting:
                os.write(self.pipes[rank], b"\n")
            self.waiting.clear()
            self.line = line
        return None

    def on_line(self, rank: int) -> None:
        self.waiting.add(rank)
        self.report()

    def on_end(self, rank: int, code: int) -> int | None:
        if (self.stopping or self.failure is not None) and lives(self.ranks[rank]):
            # the shell has ended, and its children may still be saving
            self.watch(self.wait_for_group, rank, code)
            return None
        code = 128 - code if code < 0 else code  # as shells have it: 137 for SIGKILL
        del self.ranks[rank]
        self.waiting.discard(rank)
        if self.stopping:
            return None if self.ranks else 128 + signal.SIGTERM
        if code == 0:
            self.report()
        elif self.failure is None:
            self.failure = (rank, code)
            self.signal_ranks(signal.SIGTERM)
            if self.cause is not None:
                self.follow(self.cause)
            else:
                text = f"rank {rank} ended with exit code {code}"
                self.tell({"failed": {"node": self.node, "text": text, "job": self.order.get("job", "")}})
                self.set_alarm(ANSWER_TIME)
        return None

    def on_cause(self, cause: dict[str, Any]) -> int | None:
        if self.cause is None:
            self.cause = cause
            if cause["node"] == self.node:
                self.say(cause["text"])
                return self.on_alarm()
            if self.failure is not None:
                self.follow(cause)
            elif "lost" in cause:
                self.set_alarm(self.order.get("patience", PATIENCE), "alone")
        return None

    def on_stop(self) -> int | None:
        if self.failure is None and TREE_MARKER not in os.environ:
            self.signal_ranks(signal.SIGTERM)
        return None if self.ranks else 128 + signal.SIGTERM

    def follow(self, cause: dict[str, Any]) -> None:
        """Print which job failed first, and wait until the server stops this one."""
        rank, code = self.failure or (0, 1)
        self.say(f"rank {rank} ended with exit code {code}; first failed {name_job(cause)}: {cause['text']}")
        self.set_alarm(min(CASCADE_TIME, self.order.get("patience", PATIENCE)))

    def on_alarm(self) -> int:
        return 1 if self.failure is None else self.failure[1]

    def on_alone(self) -> int | None:
        if self.stopping or self.cause is None:
            return None
        self.say(f"lost {name_job(self.cause)}: {self.cause['text']}; this job cannot go on without it, and ends")
        return 1

    def say(self, text: str) -> None:
        """Print a line of riseml itself."""
        self.outputs[1].write(b"riseml: ", [f"{text}\n".encode("utf-8", "replace")])

    # Processes

    def start(self, rank: int, variables: dict[str, str]) -> None:
        """Start the shell of one rank, with its two pipes and with threads that wait for it."""
        reports, tell = os.pipe()
        hear, self.pipes[rank] = os.pipe()
        os.dup2(tell, TELL)
        os.dup2(hear, HEAR)
        output = subprocess.PIPE if len(self.order["ranks"]) > 1 else None
        shell = subprocess.Popen(
            self.order["command"],
            env=dict(os.environ, **variables),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(TELL, HEAR),
        )
        os.close(tell)
        os.close(hear)
        self.ranks[rank] = shell
        self.watch(self.wait_for_lines, rank, reports)
        self.copies[rank] = [
            self.watch(copy_output, source, target, rank)
            for source, target in ((shell.stdout, self.outputs[0]), (shell.stderr, self.outputs[1]))
            if source is not None
        ]
        self.watch(self.wait_for_end, rank, shell)

    def watch(self, target: Callable[..., None], *details: object) -> threading.Thread:
        """Start a thread that waits for something."""
        thread = threading.Thread(target=target, args=details, daemon=True)
        thread.start()
        return thread

    def wait_for_lines(self, rank: int, reports: int) -> None:
        while os.read(reports, 1):
            self.events.put(("line", rank))

    def wait_for_end(self, rank: int, shell: subprocess.Popen[bytes]) -> None:
        code = shell.wait()
        self.join_copies([rank])  # not for ever: a process in the background may keep the pipe open
        self.events.put(("end", rank, code))

    def wait_for_group(self, rank: int, code: int) -> None:
        """Queue the end again once no process of the rank is left. The executor kills processes that take too long."""
        while lives(self.ranks[rank]):
            threading.Event().wait(BETWEEN)
        self.join_copies([rank])
        self.events.put(("end", rank, code))

    def join_copies(self, ranks: list[int]) -> None:
        """Wait until the output of ranks is copied, for `END_TIME` at most."""
        end = time.monotonic() + END_TIME
        for copy in [copy for rank in ranks for copy in self.copies[rank]]:
            copy.join(max(0.0, end - time.monotonic()))

    def report(self) -> None:
        """Tell the meeting once all processes that still run have ended the line, or all have ended."""
        if self.failure is not None:
            return
        if not self.ranks:
            self.tell({"reached": ENDED})
        elif len(self.waiting) == len(self.ranks):
            self.tell({"reached": self.line + 1})

    def signal_ranks(self, number: int) -> None:
        """Send a signal to every process of every rank."""
        for shell in self.ranks.values():
            with contextlib.suppress(OSError):
                os.killpg(shell.pid, number)

    def end_ranks(self) -> None:
        """End what still runs, and copy the rest of its output."""
        if self.failure is None:
            self.signal_ranks(signal.SIGTERM)
        end = time.monotonic() + END_TIME
        while any(map(lives, self.ranks.values())) and time.monotonic() < end:
            threading.Event().wait(BETWEEN)
        self.signal_ranks(signal.SIGKILL)
        self.join_copies(list(self.ranks))

    def leave(self, code: int) -> None:
        """End this process while no thread writes. A thread may still copy the output of a process in the background:
        Python's own way out would abort over the lock of a stream that it holds, with another exit code.
        """
        for output in self.outputs:
            output.lock.acquire(timeout=END_TIME)
        os._exit(code)

    def set_alarm(self, seconds: float, event: str = "alarm") -> None:
        """Queue an event after some seconds, in place of an earlier alarm."""
        if self.alarm is not None:
            self.alarm.cancel()
        self.alarm = threading.Timer(seconds, self.events.put, ((event,),))
        self.alarm.daemon = True
        self.alarm.start()


def lives(shell: subprocess.Popen[bytes]) -> bool:
    """Return True while a process of this shell's group is left."""
    try:
        os.killpg(shell.pid, 0)
    except OSError:
        return False
    return True


def name_job(cause: dict[str, Any]) -> str:
    return str(cause.get("job") or f"job {cause['node'] + 1} of the gang")


if __name__ == "__main__":
    launcher = Launcher(json.loads(sys.argv[1]))
    launcher.leave(launcher.run())
