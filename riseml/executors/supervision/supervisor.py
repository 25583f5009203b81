"""The supervisor of one job: a program (`make_command`) with its order on stdin (`pack_order`).

It outlives the server that starts it. It leads a session of its own and is the reaper of everything below it
(PR_SET_CHILD_SUBREAPER), so that no process of the job can leave its tree, however often it forks. It writes two files
into the job's folder:

    state.json   its process (pid, start time, boot id), and later the exit code; each version replaces the last one
    log          records of `HEADER` (nanoseconds, stream, length) and that many bytes of output

It writes the exit code after the last process of the tree has ended and the last byte of output is in the log. It
passes SIGTERM on to the whole tree, and then waits for all of it: the shell of a job ends before the program that saves
a checkpoint. Without SIGTERM it kills what the main process leaves behind, after a moment in which that may end by
itself, and names it in the log; SIGUSR1 kills the tree, and so does a limit of the order that the tree exceeds
(`tree_limits`): builds of environments have limits.

Standard library, `output_log` and `process_tree` only, because every running job has one of these. Measured on a busy
2-core machine: ready after 93 ms with 11 MB, against 465 ms with 18 MB when it imports psutil and what riseml imports.
`typing` takes 3 ms of processor time and `json` 5 ms, of some 40 ms that such a job takes: neither is imported here.

The formats are a contract: a server finds the supervisors that an older version of riseml started.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import marshal
import os
import select
import signal
import sys
import time

from riseml.executors.supervision import output_log, process_tree

TYPE_CHECKING = False  # type checkers take it for true, as the one of `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from riseml.executors.supervision.event_reading import EventReading
    from riseml.executors.supervision.tree_limits import TreeLimits

STATE_FILE = "state.json"
LOG_FILE = "log"
LOCK_FILE = "lock"
ERROR_FILE = "wrapper.err"
STARTED = "started"  # answers to the server
TAKEN = "taken"
FAILED = "failed: "  # the reason follows
KILL_ALL = signal.SIGUSR1
PROGRAM = "; ".join(
    (
        "import sys",
        "sys.path.append(sys.argv[1])",
        "from riseml.executors.supervision.supervisor import main",
        "main()",
    )
)
"""What Python runs: this module, found without site-packages."""

_READER = [
    *(sys.executable, "-I", "-S", "-c"),
    "import sys; sys.path.append(sys.argv.pop(1)); from riseml.job_programs.event_reader import run; run()",
    os.path.abspath(os.path.join(__file__, *[os.pardir] * 4)),
]
_READ_TIME = 12.0  # seconds that a reader of event files has at the end, which it ends itself before
_RESERVE = 4096  # bytes on the disk for the end of a job
_WRITE_RETRY = 2000  # milliseconds between two attempts to write the end on a full disk
_PR_SET_PDEATHSIG = 1  # numbers of prctl(2)
_PR_SET_CHILD_SUBREAPER = 36
_EXIT_NOT_EXECUTED = 127  # as a shell


def make_command(title: str) -> list[str]:
    """Return the command of a supervisor.

    Args:
        title: of the job, for people who look at the processes.
    """
    root = os.path.abspath(os.path.join(__file__, *[os.pardir] * 4))
    return [sys.executable, "-I", "-S", "-c", PROGRAM, root, title]


def pack_order(order: Mapping[str, object]) -> bytes:
    """Return an order for the stdin of a supervisor, which runs in the same Python."""
    return marshal.dumps((dict(order),))


def _unpack_order(data: bytes) -> dict[str, Any]:
    if data.startswith(b"{"):  # a server of an earlier version runs
        import json

        return dict(json.loads(data))
    return dict(marshal.loads(data)[0])


def encode_state(value: object) -> str:
    """Return a value as JSON. Only texts with special characters need the `json` module."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{encode_state(key)}: {encode_state(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(encode_state, value)) + "]"
    if isinstance(value, str) and value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    if type(value) in (int, float):
        return repr(value)
    import json

    return json.dumps(value)


def read_boot_id() -> str:
    """Return the id of this boot; pids and start times have no meaning in another boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def read_uptime() -> float:
    """Return the seconds since this boot, with those in which the machine slept. This clock is monotonic."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read_stat(pid: int) -> tuple[str, int, int] | None:
    """Return state letter, parent and start time (clock ticks since boot) of a process; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[0].decode(), int(fields[1]), int(fields[19])


class Supervisor:
    """One job from its start to its end.

    Args:
        order: folder, workdir, command, environment and identity of the job, as `ProcessExecutor` sends them; `limits`
            (see `TreeLimits`) may be missing, and so may `events` (see `EventReading`).
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._folder: str = order["folder"]
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._signal_reader, self._signal_writer = os.pipe()
        self._streams: dict[int, int] = {}  # the pipe of each stream
        self._main = 0  # pid of the job's main process
        self._main_code: int | None = None  # exit code of the main process
        self._exit_code: int | None = None  # the same, once the job has ended
        self._is_ending = False  # the tree got SIGTERM, and each of its processes gets time to end
        self._is_killed = False  # the tree got SIGKILL
        self._leave_at = 0.0  # when what the main process has left behind ends; 0: it still runs, or left nothing
        self._left = b""  # the line about that
        self._reading: EventReading | None = None  # None: nothing reads event files
        own = read_stat(os.getpid())
        assert own is not None, "this process exists"
        self._state: dict[str, Any] = {
            **order["identity"],
            "pid": os.getpid(),
            "start": own[2],
            "boot": read_boot_id(),
            "folder": os.stat(self._folder).st_ino,  # a copy of the folder has another one
            "claimed_at": time.time(),
        }

    def claim_job(self) -> bool:
        """Take the job's folder; False when another supervisor has it, or had it."""
        lock = os.open(os.path.join(self._folder, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held until this process ends
        except BlockingIOError:
            return False
        if os.path.exists(os.path.join(self._folder, STATE_FILE)):
            return False
        self._route_signals()
        self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._log = output_log.OutputLog(os.path.join(self._folder, LOG_FILE))
        self._write_state()
        return True

    def start_job(self) -> str:
        """Start the job's main process; return why that failed, or an empty text."""
        pipes = {output_log.STDOUT: os.pipe(), output_log.STDERR: os.pipe()}
        failure_reader, failure_writer = os.pipe()  # exec closes it; an error is sent through it
        self._main = os.fork()
        if self._main == 0:
            self._become_job(pipes[output_log.STDOUT][1], pipes[output_log.STDERR][1], failure_writer)
        os.close(failure_writer)
        for stream, (reader, writer) in pipes.items():
            os.close(writer)
            os.set_blocking(reader, False)
            self._streams[reader] = stream
        with open(failure_reader, "rb") as answer:
            error = answer.read().decode()
        if error:
            os.waitpid(self._main, 0)
            self._state["error"] = error
        else:
            self._state.update(main=self._main, started_at=time.time(), began=read_uptime())
            self._reading = _make_reading(self._order)
        self._write_state()
        return error

    def abandon_job(self, reason: str) -> bool:
        """Kill a job whose start has failed. Return True if it has run: then the caller writes its end. Otherwise
        release the folder, so that the server can start the job again.
        """
        self._kill_rest()
        if "started_at" in self._state:
            self._state["error"] = f"its start failed: {reason}"
            self._exit_code = 128 + signal.SIGKILL
            return True
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, STATE_FILE))
        return False

    def run_until_end(self) -> None:
        """Copy output and forward signals until the main process ends; then end the rest of the tree."""
        poll = select.poll()
        if self._reading is not None:
            self._streams[self._reading.source] = output_log.STDOUT
        for descriptor in (self._signal_reader, *self._streams):
            poll.register(descriptor, select.POLLIN)
        limits = self._order.get("limits")
        watch = None if not limits else _watch_tree(limits)
        while self._exit_code is None:
            for descriptor, _ in poll.poll(self._find_pause(watch)):
                if descriptor == self._signal_reader:
                    self._handle_signals(os.read(self._signal_reader, 512))
                elif not self._copy_output(descriptor):
                    poll.unregister(descriptor)
            if self._exit_code is None:
                self._act_in_time(watch)
        self._kill_rest()
        self._copy_rest()
        if self._left:
            self._log.write_output(output_log.OWN, self._left)
        self._state.update(exit_code=self._exit_code, finished_at=time.time())
        if "began" in self._state:
            self._state["ran"] = round(read_uptime() - self._state["began"], 6)  # also when the time of day was set
        self._write_end()

    def _act_in_time(self, watch: TreeLimits | None) -> None:
        """Do what is due."""
        if self._reading is not None and self._main_code is None:
            self._reading.start_due()
        if self._leave_at and time.monotonic() >= self._leave_at:
            self._leave_rest()
        if watch is not None and self._exit_code is None:
            self._end_excess(watch.find_excess(os.getpid()))

    def _find_pause(self, watch: TreeLimits | None) -> float | None:
        """Return the milliseconds until there is something to do without an event; None: there is nothing."""
        moments = [max(0.0, 1000 * (self._leave_at - time.monotonic())) + 1] if self._leave_at else []
        moments += [watch.interval] if watch is not None else []
        delay = None if self._reading is None or self._main_code is not None else self._reading.find_pause()
        moments += [] if delay is None else [1000 * delay + 1]
        return min(moments, default=None)

    def _route_signals(self) -> None:
        """Turn signals into bytes of a pipe: no Python code runs inside a handler."""
        os.set_blocking(self._signal_writer, False)
        os.set_blocking(self._signal_reader, False)
        signal.set_wakeup_fd(self._signal_writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, KILL_ALL, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    def _become_job(self, stdout: int, stderr: int, failure: int) -> None:
        """Turn the child into the job. The job dies with its supervisor, because no other process could see its end."""
        try:
            os.setpgid(0, 0)
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != self._state["pid"]:
                os._exit(128 + signal.SIGKILL)
            process_tree.reset_signals()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            process_tree.raise_oom_score()
            os.chdir(self._order["workdir"])
            command = self._order["command"]
            os.execvpe(command[0], command, self._order["environment"])
        except OSError as error:
            os.write(failure, f"{error.strerror}: {error.filename or self._order['command'][0]}".encode())
        finally:
            os._exit(_EXIT_NOT_EXECUTED)

    def _handle_signals(self, numbers: bytes) -> None:
        self._is_ending |= signal.SIGTERM in numbers
        if KILL_ALL in numbers:
            self._is_ending = False
            self._is_killed = True
        if signal.SIGCHLD in numbers or KILL_ALL in numbers:
            self._reap_children()
        if self._exit_code is not None:
            return
        if KILL_ALL in numbers:
            self._signal_tree(signal.SIGKILL)
        elif signal.SIGTERM in numbers:
            self._signal_tree(signal.SIGTERM)

    def _end_excess(self, excess: str) -> None:
        """Kill a tree that has exceeded a limit. It is stopped first, so that it cannot grow faster than it ends."""
        if not excess:
            return
        self._state.setdefault("excess", excess)
        self._is_ending = False
        self._is_killed = True
        self._signal_tree(signal.SIGSTOP)
        self._signal_tree(signal.SIGKILL)

    def _reap_children(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:  # nothing is left: what loses its parent becomes a child of this process
                if self._reading is None or self._is_killed or not self._reading.finish():
                    self._exit_code = self._main_code
                    return
                continue
            if pid == 0:
                self._wait_for_rest()
                return
            if pid == self._main:
                code = os.waitstatus_to_exitcode(status)
                self._main_code = 128 - code if code < 0 else code
            elif self._reading is not None and pid == self._reading.pid:
                self._reading.note_end()

    def _wait_for_rest(self) -> None:
        """Decide what becomes of children that are left: SIGTERM gives them time, SIGKILL none."""
        if self._main_code is not None and not self._is_killed and self._is_read_alone():
            self._leave_at = self._leave_at or time.monotonic() + _READ_TIME
        elif self._is_ending or self._main_code is None:
            self._leave_at = 0.0
        elif self._is_killed:
            self._exit_code = self._main_code
        elif not self._leave_at:
            self._leave_at = time.monotonic() + process_tree.LEAVE_TIME

    def _is_read_alone(self) -> bool:
        """Return True when only the reader of event files is left. It is told once the job has ended; after SIGTERM,
        when all processes of the job have.
        """
        if self._reading is None or self._reading.pid < 0:
            return False
        is_alone = not self._list_left()
        if is_alone or not self._is_ending:
            self._reading.finish()
        return is_alone

    def _list_left(self) -> list[int]:
        """Return the processes of the job that are left, without the reader of its event files."""
        own = -1 if self._reading is None else self._reading.pid
        return [pid for pid in process_tree.list_descendants(os.getpid()) if pid != own]

    def _leave_rest(self) -> None:
        left = self._list_left()
        self._left = self._left or process_tree.describe_left(left)
        if self._reading is None or self._reading.pid < 0 or not left:
            self._exit_code = self._main_code
            return
        for pid in left:
            process_tree.send_signal(pid, signal.SIGKILL)
        self._leave_at = time.monotonic() + _READ_TIME

    def _signal_tree(self, number: int) -> bool:
        """Signal every process of the tree; False when this user may signal none of them."""
        sent = [process_tree.send_signal(pid, number) for pid in process_tree.list_descendants(os.getpid())]
        return not sent or any(sent)

    def _kill_rest(self) -> None:
        """Kill until no child is left. The children of a killed process become children of this one."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    if not self._signal_tree(signal.SIGKILL):
                        return  # a setuid program of another user: this user cannot kill it
                    os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def _copy_output(self, descriptor: int) -> bool:
        """Copy one piece of output into the log; False at the end of the stream. After the end of the main process,
        an empty pipe is the end too.
        """
        try:
            data = os.read(descriptor, output_log.READ_SIZE)
        except BlockingIOError:
            return self._exit_code is None
        if data:
            self._log.write_output(self._streams[descriptor], data)
        return bool(data)

    def _copy_rest(self) -> None:
        """Copy what the job has printed before its end."""
        for descriptor in self._streams:
            for _ in range(output_log.count_last_reads(descriptor, output_log.READ_SIZE)):
                if not self._copy_output(descriptor):
                    break

    def _write_state(self) -> None:
        """Replace the state, in the space that is reserved for that; then reserve space for the next one."""
        path = os.path.join(self._folder, STATE_FILE)
        fresh = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            content = encode_state(self._state).encode()
            os.write(fresh, content)
            os.ftruncate(fresh, len(content))
        finally:
            os.close(fresh)
        os.rename(f"{path}.new", path)
        if "finished_at" not in self._state:
            self._reserve_space(f"{path}.new")

    def _reserve_space(self, path: str) -> None:
        """Reserve space for the end: a job that fills the disk could not be ended otherwise."""
        with contextlib.suppress(OSError):  # the disk is full now: the end is written again and again
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(file, 0, _RESERVE)
            finally:
                os.close(file)

    def _write_end(self) -> None:
        """Write the end, again and again where no space is reserved on a full disk; give up when the server has removed
        the folder.
        """
        pause = select.poll()
        while True:
            self._log.note_loss()
            try:
                self._write_state()
            except FileNotFoundError:
                return
            except OSError:
                pause.poll(_WRITE_RETRY)
            else:
                return


def _make_reading(order: dict[str, Any]) -> EventReading | None:
    """Return what reads the event files of a job; None without `events` in its order."""
    events = order.get("events")
    if not events:
        return None
    from riseml.executors.supervision.event_reading import EventReading

    return EventReading(_READER, events, order["environment"], order["workdir"])


def _watch_tree(limits: dict[str, float]) -> TreeLimits:
    """Return what watches the tree; jobs have no limits, so that their supervisors do not import it."""
    from riseml.executors.supervision.tree_limits import TreeLimits

    return TreeLimits(limits)


def _start_supervised_job(order: dict[str, Any]) -> tuple[Supervisor | None, str]:
    """Start the job; return its supervisor if the job has run, and the answer for the server."""
    try:
        os.setsid()
        _detach_from_server(order["folder"])
        supervisor = Supervisor(order)
        if not supervisor.claim_job():
            return None, TAKEN
    except OSError as error:
        return None, f"{FAILED}{error}"
    try:
        refusal = supervisor.start_job()
    except OSError as failure:  # this machine has no process slot or no disk space for it
        ran = supervisor.abandon_job(str(failure))
        return (supervisor if ran else None), f"{FAILED}{failure}"
    return (None, STARTED) if refusal else (supervisor, STARTED)


def _detach_from_server(folder: str) -> None:
    """Detach from the server's pipes and terminal; write this process' own errors into a file next to the job's log."""
    os.umask(0o022)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(os.open(os.path.join(folder, ERROR_FILE), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)


def supervise(content: bytes, answer: int) -> None:
    """Run the job of a packed order from its start to its end, in this process. Does not return.

    Args:
        content: see `pack_order`.
        answer: descriptor of a pipe for the answer to the server.
    """
    supervisor, word = _start_supervised_job(_unpack_order(content))
    with contextlib.suppress(BrokenPipeError):  # the server has been killed; the next one finds the job
        os.write(answer, word.encode())
    os.close(answer)
    if supervisor is not None:
        supervisor.run_until_end()
    os._exit(0)


def main() -> None:
    """Start the supervisor as a child, wait for its answer and print it. Does not return: Python's own clean-up takes
    some milliseconds, and there is nothing to clean up.
    """
    content = sys.stdin.buffer.read()
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        with open(reader, "rb") as answer:
            os.write(1, answer.read())
        os._exit(0)
    supervise(content, writer)
