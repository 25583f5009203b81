"""Runs one script in several processes of a job, and lets the jobs of a gang meet: at barriers, and for Horovod.

`python3 -c TEXT ORDER`, where ORDER is JSON:

    {"script": "python train.py", "first": 2, "ranks": [{"HOROVOD_RANK": "2"}, {"HOROVOD_RANK": "3"}],
     "job": "worker.2", "node": 1, "nodes": 2, "address": "$HOROVOD_GLOO_RENDEZVOUS_ADDR:2222"}

Without `address` the processes of this job have barriers among themselves only. With it, the launcher of node 0 listens
there. Every launcher has one connection to it, over which it says which line its processes have reached and what
failed. The same port is Horovod's rendezvous: GET, PUT and DELETE of /scope/key. So the launcher knows which ranks have
met, and a training in which every process is alone cannot end well.
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
from typing import Any, BinaryIO, TextIO

from riseml.job_programs.rank_meeting import ENDED, House, Meeting

TELL, HEAR = 8, 9  # descriptors of the shells: they end a line, and go on
ANSWER_TIME = 5.0  # seconds for the first launcher to say what failed first
CASCADE_TIME = 10.0  # seconds that a job which failed after another one waits to be stopped
END_TIME = 2.0  # seconds between SIGTERM and SIGKILL for the other processes of a job that failed


class Launcher:
    """Starts the processes of one job, and ends with their exit code. Every event goes through one queue."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.node: int = order.get("node", 0)
        self.events: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self.ranks: dict[int, subprocess.Popen[bytes]] = {}  # rank -> its shell, until it has ended
        self.pipes: dict[int, int] = {}  # rank -> where it waits to go on
        self.waiting: set[int] = set()  # ranks that have ended the line
        self.line = 0
        self.link: socket.socket | None = None
        self.meeting: Meeting | None = None
        self.failure: tuple[int, int] | None = None  # rank and exit code of the first process here that failed
        self.cause: dict[str, Any] | None = None  # what failed first in the gang
        self.alarm: threading.Timer | None = None
        self.stopping = False

    def run(self) -> int:
        """Return the exit code of the job."""
        signal.signal(signal.SIGTERM, lambda *_: self.events.put(("stop",)))
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

    # The meeting

    def connect(self) -> None:
        """Join the meeting, and turn its messages into events."""
        if "address" not in self.order:
            self.tell({"reached": 0})
            return
        host, _, port = os.path.expandvars(self.order["address"]).rpartition(":")
        place = (host, int(port))
        if self.node == 0 and not self.open_house(place):
            return
        while self.link is None:
            try:
                self.link = socket.create_connection(place)
            except OSError:
                threading.Event().wait(0.1)
        self.link.sendall(b"JOIN %d HTTP/1.0\r\n\r\n" % self.node)
        self.tell({"reached": 0})
        with contextlib.suppress(OSError, ValueError):
            for line in self.link.makefile("rb"):
                self.events.put(next(iter(json.loads(line.decode()).items())))
        self.events.put(("cause", {"node": 0, "text": "its processes are gone"}))

    def open_house(self, place: tuple[str, int]) -> bool:
        """Listen for the launchers of all jobs; return False if the port is in use."""
        self.meeting = Meeting(self.order["nodes"], self.order["nodes"] * len(self.order["ranks"]))
        try:
            threading.Thread(target=House(place, self.meeting).serve_forever, daemon=True).start()
        except OSError as error:
            self.events.put(("cause", {"node": 0, "text": f"cannot listen at {self.order['address']}: {error}"}))
            return False
        return True

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to the meeting; without one, answer it here."""
        if self.link is not None:
            with contextlib.suppress(OSError):
                self.link.sendall(json.dumps(message).encode() + b"\n")
        elif "failed" in message:
            self.events.put(("cause", message["failed"]))
        else:
            self.events.put(("go", message["reached"]))

    def wait_for_others(self, meeting: Meeting) -> None:
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
                say(cause["text"])
                return self.on_alarm()
            if self.failure is not None:
                self.follow(cause)
        return None

    def on_stop(self) -> int | None:
        self.stopping = True
        self.signal_ranks(signal.SIGTERM)
        return None if self.ranks else 128 + signal.SIGTERM

    def follow(self, cause: dict[str, Any]) -> None:
        """Say which job failed first, and wait to be stopped because of it."""
        rank, code = self.failure or (0, 1)
        first = cause.get("job") or f"job {cause['node'] + 1} of the gang"
        say(f"rank {rank} ended with exit code {code}; first failed {first}: {cause['text']}")
        self.set_alarm(CASCADE_TIME)

    def on_alarm(self) -> int:
        return 1 if self.failure is None else self.failure[1]

    # Processes

    def start(self, rank: int, variables: dict[str, str]) -> None:
        """Start the shell of one rank, with its two pipes and with threads that wait for it."""
        told, tell = os.pipe()
        hear, self.pipes[rank] = os.pipe()
        os.dup2(tell, TELL)
        os.dup2(hear, HEAR)
        output = subprocess.PIPE if len(self.order["ranks"]) > 1 else None
        shell = subprocess.Popen(
            ["/bin/sh", "-ec", self.order["script"]],
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
        threading.Thread(target=self.wait_for_lines, args=(rank, told), daemon=True).start()
        copies = [
            threading.Thread(target=copy_lines, args=(source, target, rank), daemon=True)
            for source, target in ((shell.stdout, sys.stdout), (shell.stderr, sys.stderr))
            if source is not None
        ]
        for copy in copies:
            copy.start()
        threading.Thread(target=self.wait_for_end, args=(rank, shell, copies), daemon=True).start()

    def wait_for_lines(self, rank: int, told: int) -> None:
        while os.read(told, 1):
            self.events.put(("line", rank))

    def wait_for_end(self, rank: int, shell: subprocess.Popen[bytes], copies: list[threading.Thread]) -> None:
        code = shell.wait()
        for copy in copies:
            copy.join(END_TIME)  # a process in the background may keep the pipe open
        self.events.put(("end", rank, code))

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
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, number)

    def end_ranks(self) -> None:
        """End what still runs."""
        for shell in self.ranks.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                shell.wait(END_TIME)
        self.signal_ranks(signal.SIGKILL)

    def set_alarm(self, seconds: float) -> None:
        """End the job after some seconds, in place of an earlier alarm."""
        if self.alarm is not None:
            self.alarm.cancel()
        self.alarm = threading.Timer(seconds, self.events.put, (("alarm",),))
        self.alarm.daemon = True
        self.alarm.start()


def say(text: str) -> None:
    """Print a line of riseml's own in one write: threads that copy output would come between two."""
    sys.stderr.write(f"riseml: {text}\n")
    sys.stderr.flush()


def copy_lines(source: BinaryIO, target: TextIO, rank: int) -> None:
    """Copy output line by line, each with the rank in front."""
    begin = b"[%d] " % rank
    for line in iter(lambda: source.readline(1 << 16), b""):
        target.buffer.write(begin + line + (b"" if line.endswith(b"\n") else b"\n"))
        target.flush()


if __name__ == "__main__":
    sys.exit(Launcher(json.loads(sys.argv[1])).run())
