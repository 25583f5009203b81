"""The supervisor of one job: `python -I -S supervisor.py TITLE`, its order as JSON on stdin. Standard library only.

It outlives the server that started it. It is the leader of a session of its own and the reaper of everything below it,
so that no process of the job can leave its tree, however often it forks. It writes two files into the job's folder:

    state.json   who runs here (pid, start time, boot id), and later the exit code; each version replaces the last whole
    log          records of `HEADER` (nanoseconds, stream, length) and that many bytes of output

The exit code is written after the last process of the tree is gone and the last byte of output is in the log. SIGTERM
is passed on to the whole tree; SIGUSR1 kills it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import struct
import sys
import time
from typing import Any

STATE, LOG, LOCK, ERRORS = "state.json", "log", "lock", "wrapper.err"
HEADER = struct.Struct(">QBI")
STDOUT, STDERR, OWN = 1, 2, 3
STARTED, TAKEN, FAILED = "started", "taken", "failed: "
KILL_ALL = signal.SIGUSR1

MOST_LOG = 1 << 32  # bytes; more than the server keeps of a job
_CHUNK = 1 << 16
_OOM_SCORE = 500  # a machine that runs out of memory kills jobs, and neither their supervisors nor the server
_RETRY = 2000  # milliseconds between two attempts to write the end on a full disk
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def boot_id() -> str:
    """Another one after each start of the machine; pids and start times mean nothing across it."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def read_stat(pid: int) -> tuple[str, int, int] | None:
    """State letter, parent and start time (clock ticks since boot) of a process; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[0].decode(), int(fields[1]), int(fields[19])


def descendants(root: int) -> list[int]:
    """Every process below `root`; one whose main thread has ended is a zombie here and may still run."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        found = read_stat(int(name)) if name.isdigit() else None
        if found is not None:
            children.setdefault(found[1], []).append(int(name))
    below: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, [])]
        below += level
    return below


class Log:
    """The job's output, each piece with the time at which it was read. A full disk costs output, never the job; what is
    beyond `MOST_LOG` is not kept.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._end = os.fstat(self._file).st_size
        self._last = 0
        self._lost = 0

    def write(self, stream: int, data: bytes) -> None:
        """Append one record."""
        if self._end > MOST_LOG:
            return
        self._last = max(self._last, time.time_ns())
        note = b"[riseml: %d bytes of output are lost, the disk was full]\n" % self._lost if self._lost else b""
        record = self._record(OWN, note) if note else b""
        try:
            self._append(record + self._record(stream, data))
        except OSError:
            os.ftruncate(self._file, self._end)
            self._lost += len(data)
        else:
            self._lost = 0

    def _record(self, stream: int, data: bytes) -> bytes:
        return HEADER.pack(self._last, stream, len(data)) + data

    def _append(self, record: bytes) -> None:
        view = memoryview(record)
        while view:
            view = view[os.write(self._file, view) :]
        self._end += len(record)


class Supervisor:
    """One job from its start to its end."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._folder: str = order["folder"]
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._wake, self._bell = os.pipe()
        self._streams: dict[int, int] = {}
        self._main = 0
        self._code: int | None = None
        own = read_stat(os.getpid())
        assert own is not None, "this process exists"
        self._state: dict[str, Any] = {
            **order["identity"],
            "pid": os.getpid(),
            "start": own[2],
            "boot": boot_id(),
            "claimed_at": time.time(),
        }

    def claim(self) -> bool:
        """True when this process is the one that runs the job: nobody else does, or ever did."""
        lock = os.open(os.path.join(self._folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held until this process ends
        except BlockingIOError:
            return False
        if os.path.exists(os.path.join(self._folder, STATE)):
            return False
        self._listen()
        self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._log = Log(os.path.join(self._folder, LOG))
        self._write_state()
        return True

    def start(self) -> str:
        """Start the job's main process; an empty text, or why that failed."""
        pipes = {STDOUT: os.pipe(), STDERR: os.pipe()}
        failure, told = os.pipe()
        self._main = os.fork()
        if self._main == 0:
            self._become(pipes[STDOUT][1], pipes[STDERR][1], told)
        os.close(told)
        for stream, (reader, writer) in pipes.items():
            os.close(writer)
            os.set_blocking(reader, False)
            self._streams[reader] = stream
        with open(failure, "rb") as answer:
            error = answer.read().decode()
        if error:
            os.waitpid(self._main, 0)
            self._state["error"] = error
        else:
            self._state.update(main=self._main, started_at=time.time())
        self._write_state()
        return error

    def run(self) -> None:
        """Copy the output and pass signals on, until the main process has ended; then end everything else."""
        poll = select.poll()
        for descriptor in (self._wake, *self._streams):
            poll.register(descriptor, select.POLLIN)
        while self._code is None:
            for descriptor, _ in poll.poll():
                if descriptor == self._wake:
                    self._hear(os.read(self._wake, 512))
                elif not self._copy(descriptor):
                    poll.unregister(descriptor)
        self._end_rest()
        for descriptor in self._streams:
            while self._copy(descriptor):
                pass
        self._state.update(exit_code=self._code, finished_at=time.time())
        self._write_end()

    def _listen(self) -> None:
        """Signals arrive as bytes in a pipe: nothing of Python runs inside a handler."""
        os.set_blocking(self._bell, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, KILL_ALL, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    def _become(self, stdout: int, stderr: int, told: int) -> None:
        """In the child: become the job. It dies with its supervisor, without whom nobody would know of its end."""
        try:
            os.setpgid(0, 0)
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != self._state["pid"]:
                os._exit(128 + signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            for number in signal.Signals:
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            _offer_to_oom()
            os.chdir(self._order["workdir"])
            command = self._order["command"]
            os.execvpe(command[0], command, self._order["environment"])
        except OSError as error:
            os.write(told, f"{error.strerror}: {error.filename or self._order['command'][0]}".encode())
        finally:
            os._exit(127)

    def _hear(self, signals: bytes) -> None:
        if signal.SIGCHLD in signals:
            self._reap()
        if self._code is not None:
            return
        if KILL_ALL in signals:
            self._signal_all(signal.SIGKILL)
        elif signal.SIGTERM in signals:
            self._signal_all(signal.SIGTERM)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._main:
                code = os.waitstatus_to_exitcode(status)
                self._code = 128 - code if code < 0 else code

    def _signal_all(self, number: int) -> bool:
        """Signal the tree; False when none of its processes may be signalled by us."""
        sent = [_send(pid, number) for pid in descendants(os.getpid())]
        return not sent or any(sent)

    def _end_rest(self) -> None:
        """Kill until no child is left. What a killed process leaves behind becomes ours, so that nothing escapes."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    if not self._signal_all(signal.SIGKILL):
                        return  # somebody else's (setuid): it cannot be killed by us
                    os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def _copy(self, descriptor: int) -> bool:
        """Move what is there into the log; False at the end, or at what is the end for now."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return self._code is None
        if data:
            self._log.write(self._streams[descriptor], data)
        return bool(data)

    def _write_state(self) -> None:
        path = os.path.join(self._folder, STATE)
        with open(f"{path}.new", "w") as file:
            json.dump(self._state, file)
        os.rename(f"{path}.new", path)

    def _write_end(self) -> None:
        """The end has to get through; without its folder nobody waits for it."""
        pause = select.poll()
        while True:
            try:
                self._write_state()
            except FileNotFoundError:
                return
            except OSError:
                pause.poll(_RETRY)
            else:
                return


def _offer_to_oom() -> None:
    """Let the kernel end this process sooner than others; everybody may do that to himself, and nobody undo it."""
    with open("/proc/self/oom_score_adj", "r+") as file:
        if int(file.read()) < _OOM_SCORE:
            file.write(str(_OOM_SCORE))


def _send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except OSError as error:
        return error.errno == errno.ESRCH
    return True


def _begin(order: dict[str, Any]) -> tuple[Supervisor | None, str]:
    """Start the job: its supervisor when it runs, and the first word for the server."""
    try:
        os.setsid()
        _detach(order["folder"])
        supervisor = Supervisor(order)
        if not supervisor.claim():
            return None, TAKEN
        error = supervisor.start()
    except OSError as error:
        return None, f"{FAILED}{error}"
    return (None, STARTED) if error else (supervisor, STARTED)


def _detach(folder: str) -> None:
    """Let go of everything that came from the server; our own errors go beside the job's log."""
    os.umask(0o022)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(os.open(os.path.join(folder, ERRORS), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)


def main() -> int:
    """Start the supervisor, wait for its first word and pass that on."""
    order = json.load(sys.stdin)
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        with open(reader) as answer:
            sys.stdout.write(answer.read())
        return 0
    supervisor, word = _begin(order)
    os.write(writer, word.encode())
    os.close(writer)
    if supervisor is not None:
        supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
