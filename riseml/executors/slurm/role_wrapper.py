"""One role of a gang on its node: `python3 role_wrapper.py FOLDER ROLE HOST PORT`, which srun starts.

It calls the gang's supervisor (`gang_supervisor`) at HOST and PORT, tells it the address and a free port of its role,
and waits until every role has done so. Then it starts the role's command with the addresses of all, in a session of its
own, writes what the command prints into ROLE.log and what it uses into ROLE.use (`output_log`, `role_use`). It writes
the end into ROLE.exit and reports it. When riseml calls its port, it starts `role_server`.

No command outlives its gang: when the connection to the supervisor breaks, or nothing arrives over it for `SILENCE`
seconds, the command gets SIGTERM, its grace, and SIGKILL (`gang_lines`).

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from riseml.executors.slurm import gang_lines, gang_records, role_use
from riseml.executors.supervision import event_reading, output_log, process_tree

CONNECT = 60.0  # seconds to reach the supervisor
GONE = "the gang's supervisor did not answer any more"
_KILL_PAUSE = 0.05  # seconds between two checks of processes that were killed
_READ_TIME = 12.0  # seconds that a reader of event files has at the end, which it ends itself before
_SERVER_PAUSE = 5.0  # seconds between two starts of a server that cannot run
_PR_SET_PDEATHSIG = 1  # numbers of prctl(2)
_PR_SET_CHILD_SUBREAPER = 36


class RoleWrapper:
    """One role from its call to the supervisor to the end of its command."""

    def __init__(self, folder: str, role: str) -> None:
        self.folder = folder
        self.role = role
        with open(os.path.join(folder, "roles", role + ".json")) as file:
            self.order = json.load(file)
        self.log = output_log.OutputLog(os.path.join(folder, role + ".log"))
        self.use = role_use.UseRecorder(folder, role, self.order)
        self.listener = socket.socket()  # riseml calls it for commands and ports
        self.listener.bind(("", 0))
        self.listener.listen(128)
        self.listens = True  # the first call starts the server
        self.role_server = None  # type: subprocess.Popen[bytes] | None
        self.server_started_at = 0.0  # when it was started
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.signals, writer = os.pipe()
        for end in (self.signals, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self.child = None  # type: subprocess.Popen[bytes] | None
        self.streams = {}  # type: dict[int, int]
        self.reading = None  # type: event_reading.EventReading | None
        self.read_until = 0.0  # when the reader of event files is ended; 0: it was not told of the end
        self.leave_at = 0.0  # when what the command has left behind ends; 0: it still runs, or left nothing
        self.left = b""  # the line about that
        self.kill_at = 0.0  # when the command gets SIGKILL; 0: it does not have to end
        self.outside = False  # Slurm or a user's scancel has ended it, before the supervisor did
        self.error = ""  # why it ends, if neither the supervisor nor the command caused that
        self.lines = None  # type: gang_lines.LineConnection | None

    def run(self, host: str, port: int) -> int:
        """Wait for the other roles, run the command, and return its exit code."""
        own = socket.socket()
        own.bind(("", 0))
        connection = _connect_to_supervisor(host, port)
        self.lines = gang_lines.LineConnection(connection, self.order["token"], gang_lines.ROLE)
        node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        name = connection.getsockname()[0]
        if name.startswith("127."):
            name = node
        hello = {"role": self.role, "host": name, "port": own.getsockname()[1], "node": node}
        hello["door"] = self.listener.getsockname()[1]
        addresses = self._wait_for_all(hello)
        own.close()
        if addresses is None:
            return 1
        error = self._start_command(addresses)
        self._erase_variables()
        if error:
            self._tell_supervisor({"error": error})
            return 127
        self._tell_supervisor({"started": True})
        code = self._follow_command()
        self._write_exit(code)
        self._tell_supervisor({"code": code, "outside": self.outside})
        return code

    def _wait_for_all(self, hello: "dict[str, Any]") -> "dict[str, str] | None":
        """Answer the supervisor's challenge, and return the address of each role; None when the gang does not start."""
        assert self.lines is not None
        while True:
            select.select([self.lines.connection.fileno(), self.signals], [], [], 1.0)
            self.lines.beat()
            if signal.SIGTERM in self._read_signals() or self.lines.is_silent():
                return None
            if not select.select([self.lines.connection], [], [], 0)[0]:
                continue
            messages = self.lines.receive()
            if messages is None or any("signal" in message for message in messages):
                return None
            for message in messages:
                if "challenge" in message:
                    self.lines.introduce(hello)
                if "go" in message:
                    return self._check_addresses(message["go"])

    def _check_addresses(self, addresses: "dict[str, str]") -> "dict[str, str] | None":
        """Return the addresses, which become parts of a shell line; None when one of them is not an address."""
        are_valid = all(gang_lines.is_address(addresses.get(role)) for role in self.order["tokens"])
        return addresses if are_valid else None

    def _start_command(self, addresses: "dict[str, str]") -> str:
        """Start the command; return why that failed, or an empty text."""

        def fill(text: str) -> str:
            for role, tokens in self.order["tokens"].items():
                host, _, port = addresses[role].rpartition(":")
                text = text.replace(tokens[0], host).replace(tokens[1], port)
            return text

        environment = dict(os.environ)
        environment.update({name: fill(value) for name, value in self.order["environment"].items()})
        if self.order.get("path"):
            environment["PATH"] = self.order["path"] + ":" + environment.get("PATH", os.defpath)
        try:
            self.child = subprocess.Popen(
                [fill(part) for part in self.order["command"]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.order["workdir"],
                env=environment,
                preexec_fn=self._become_command,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        if self.order.get("events"):
            reader = [sys.executable, "-I", "-S", os.path.join(self.folder, "event_reader.py")]
            workdir = self.order["workdir"]
            self.reading = event_reading.EventReading(reader, self.order["events"], environment, workdir)
        assert self.child.stdout is not None and self.child.stderr is not None
        self.streams = {self.child.stdout.fileno(): output_log.STDOUT, self.child.stderr.fileno(): output_log.STDERR}
        if self.reading is not None:
            self.streams[self.reading.source] = output_log.STDOUT
        for descriptor in self.streams:
            os.set_blocking(descriptor, False)
        return ""

    def _erase_variables(self) -> None:
        """Erase the values of variables from the file of the role: they may be secrets, and the command has them."""
        path = os.path.join(self.folder, "roles", self.role + ".json")
        try:
            with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(dict(self.order, environment={}), file)
            os.rename(path + ".new", path)
        except OSError:  # a full disk, or the folder is gone: they are there until the role is removed
            return

    def _become_command(self) -> None:
        """Begin a session. The command dies with this process: no other process would see its end."""
        os.setsid()
        self.libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def _follow_command(self) -> int:
        """Copy output and forward signals until the command has ended; return its exit code."""
        assert self.child is not None
        poll = select.poll()
        poll.register(self.signals, select.POLLIN)
        if self.lines is not None:
            poll.register(self.lines.connection.fileno(), select.POLLIN)
        for descriptor in self.streams:
            poll.register(descriptor, select.POLLIN)
        poll.register(self.listener, select.POLLIN)
        while not self._has_ended(self.child):
            self._reap_orphans()
            self.use.record_use(os.getpid())
            self._watch_server(poll)
            for descriptor, _ in poll.poll(int(1000 * self._find_timeout())):
                if not self._handle_input(descriptor):
                    poll.unregister(descriptor)
            self._keep_alive(poll)
            if self.kill_at and time.monotonic() >= self.kill_at:
                self._signal_tree(signal.SIGKILL)
        self._take_signals()
        self._kill_rest()
        self._copy_rest()
        if self.left:
            self.log.write_output(output_log.OWN, self.left)
        code = self.child.returncode
        return 128 - code if code < 0 else code

    def _find_timeout(self) -> float:
        """Return how long nothing has to be done, in seconds."""
        delay = max(0.0, self.leave_at - time.monotonic()) + 0.001 if self.leave_at else 1.0
        begin = None if self.reading is None else self.reading.find_pause()
        return min(1.0, delay, self.use.find_timeout(), 1.0 if begin is None else begin)

    def _has_ended(self, child: "subprocess.Popen[bytes]") -> bool:
        """Return True when the command has ended; after SIGTERM, when all processes that it started have ended, too: a
        shell ends before the program that saves a checkpoint. Without SIGTERM the others have a moment.
        """
        if child.poll() is None:
            if self.reading is not None:
                self.reading.start_due()
            return False
        leftovers = self._list_leftovers()
        if not leftovers:
            return not self._reads_on()
        if self.kill_at:
            return False
        reads_on = self._reads_on()
        self.leave_at = self.leave_at or time.monotonic() + process_tree.LEAVE_TIME
        if time.monotonic() < self.leave_at:
            return False
        self.left = self.left or process_tree.describe_left(leftovers)
        for pid in leftovers if reads_on else ():
            process_tree.send_signal(pid, signal.SIGKILL)
        return not reads_on

    def _reads_on(self) -> bool:
        """Tell the reader of event files that the command has ended. Return True while it reads the rest."""
        if self.reading is None or not self.reading.finish():
            return False
        self.read_until = self.read_until or time.monotonic() + _READ_TIME
        return time.monotonic() < self.read_until

    def _list_leftovers(self) -> "list[int]":
        """Return the processes below this one that the command has started."""
        self._reap_orphans()
        reader = -1 if self.reading is None else self.reading.pid
        own = [pid for pid in (self.use.find_reader(), reader, self.role_server and self.role_server.pid) if pid]
        own += [descendant for pid in own for descendant in process_tree.list_descendants(pid)]
        return [pid for pid in process_tree.list_descendants(os.getpid()) if pid not in own]

    def _reap_orphans(self) -> None:
        """Reap the processes whose parents ended before them, until the next child is one that this process started
        itself: as zombies they would count against the limit of processes.
        """
        started = [process.pid for process in (self.child, self.role_server) if process is not None]
        started.append(self.use.find_reader())
        while True:
            try:
                child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if child is None or child.si_pid in started:
                return
            os.waitpid(child.si_pid, os.WNOHANG)
            if self.reading is not None and child.si_pid == self.reading.pid:
                self.reading.note_end()

    def _handle_input(self, descriptor: int) -> bool:
        """Handle one readable descriptor; return False at its end."""
        if descriptor in self.streams:
            return self._copy_output(descriptor)
        if descriptor == self.listener.fileno():
            self._start_server()
            return False
        if descriptor == self.signals:
            self._take_signals()
            return True
        return self._read_supervisor()

    def _take_signals(self) -> None:
        """Forward a SIGTERM of Slurm or of a user's scancel; the supervisor sends its signals over the connection."""
        if signal.SIGTERM in self._read_signals():
            if not self.kill_at:
                self.outside = True
                self.error = gang_records.STOPPED
            self._end_command("TERM")

    def _start_server(self) -> None:
        """Start the server at the first call. It takes all calls from then on."""
        assert self.child is not None
        self.listens = False
        self.server_started_at = time.monotonic()
        program = os.path.join(self.folder, "role_server.py")
        try:
            with open(os.path.join(self.folder, self.role + ".door"), "ab") as output:
                self.role_server = subprocess.Popen(
                    [sys.executable, program, self.folder, self.role, str(self.child.pid)],
                    stdin=self.listener.fileno(),
                    stdout=output,
                    stderr=output,
                    preexec_fn=self._become_command,
                )
        except (OSError, subprocess.SubprocessError):  # a full disk, or the command has used up all processes
            self.role_server = None

    def _watch_server(self, poll: "select.poll") -> None:
        """Listen again when the server has ended before the role, or could not be started."""
        ended = self.role_server is None or self.role_server.poll() is not None
        if not self.listens and ended and time.monotonic() > self.server_started_at + _SERVER_PAUSE:
            self.listens = True
            poll.register(self.listener, select.POLLIN)

    def _read_supervisor(self) -> bool:
        """Carry out messages of the supervisor; return False when it is gone."""
        assert self.lines is not None
        messages = self.lines.receive()
        if messages is None:
            self._lose_supervisor()
            return False
        for message in messages:
            if "signal" in message:
                self._end_command(message["signal"])
        return True

    def _keep_alive(self, poll: "select.poll") -> None:
        if self.lines is None:
            return
        try:
            self.lines.beat()
            is_gone = self.lines.is_silent()
        except OSError:
            is_gone = True
        if is_gone:
            poll.unregister(self.lines.connection.fileno())
            self._lose_supervisor()

    def _lose_supervisor(self) -> None:
        """End the command: no supervisor would see its end, and another attempt may follow on another node."""
        assert self.lines is not None
        self.lines.connection.close()
        self.lines = None
        self.error = "" if self.kill_at else GONE
        self.log.write_output(output_log.OWN, b"[riseml: the gang's supervisor is gone, so this role ends]\n")
        self._end_command("TERM")

    def _end_command(self, name: str) -> None:
        if name == "KILL":
            self._signal_tree(signal.SIGKILL)
        elif not self.kill_at:
            self.kill_at = time.monotonic() + self.order["stop_grace"]
            self._signal_tree(signal.SIGTERM)

    def _signal_tree(self, number: int) -> "list[int]":
        """Signal every process below this one; return those that could be signalled."""
        sent = []
        for pid in process_tree.list_descendants(os.getpid()):
            try:
                os.kill(pid, number)
                sent.append(pid)
            except OSError:  # it has ended, or is a setuid program of another user
                continue
        return sent

    def _kill_rest(self) -> None:
        """Kill the processes that the command has left behind, which became children of this process. Wait for their
        end, but not for that of nvidia-smi: a hanging driver keeps it forever.
        """
        reader = self.use.find_reader()
        readers = {reader, *process_tree.list_descendants(reader)}
        while set(self._signal_tree(signal.SIGKILL)) - readers:
            try:
                pid = os.waitpid(-1, os.WNOHANG)[0]
            except ChildProcessError:
                return
            if pid == 0:
                self._stay_connected()
                select.select([self.signals], [], [], _KILL_PAUSE)
                self._read_signals()

    def _stay_connected(self) -> None:
        """Send a heartbeat when one is due. The command has ended: without a supervisor nothing is left to do."""
        try:
            if self.lines is not None:
                self.lines.beat()
        except OSError:
            self.lines = None

    def _copy_rest(self) -> None:
        """Copy what the command has printed before its end."""
        for descriptor in self.streams:
            for _ in range(output_log.count_last_reads(descriptor, output_log.READ_SIZE)):
                if not self._copy_output(descriptor):
                    break

    def _copy_output(self, descriptor: int) -> bool:
        try:
            data = os.read(descriptor, output_log.READ_SIZE)
        except BlockingIOError:
            return self.child is not None and self.child.returncode is None
        if data:
            self.log.write_output(self.streams[descriptor], data)
        return bool(data)

    def _read_signals(self) -> bytes:
        try:
            return os.read(self.signals, 512)
        except BlockingIOError:
            return b""

    def _write_exit(self, code: int) -> None:
        """Record the end, in case the supervisor cannot."""
        self.log.note_loss()
        path = os.path.join(self.folder, self.role + ".exit")
        try:
            with open(path + ".new", "w") as file:
                json.dump({"exit_code": code, "error": self.error, "finished_at": time.time()}, file)
            os.rename(path + ".new", path)
        except OSError:  # a full disk, or the folder is gone: the supervisor gets the end over the connection
            return

    def _tell_supervisor(self, message: "dict[str, Any]") -> None:
        if self.lines is None:
            return
        try:
            self.lines.send(message)
        except OSError:
            if self.child is not None and self.child.returncode is None:
                self._lose_supervisor()
            self.lines = None


def _connect_to_supervisor(host: str, port: int) -> socket.socket:
    """Return a connection to the supervisor.

    Raises:
        OSError: it is not reached within `CONNECT` seconds.
    """
    end = time.monotonic() + CONNECT
    while True:
        try:
            return socket.create_connection((host, port), 10)
        except OSError:
            if time.monotonic() > end:
                raise
            select.select([], [], [], 0.2)


def main() -> int:
    """Run one role."""
    folder, role, host, port = sys.argv[1:5]
    return RoleWrapper(folder, role).run(host, int(port))


if __name__ == "__main__":
    sys.exit(main())
