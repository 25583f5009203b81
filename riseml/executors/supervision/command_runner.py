"""The runner of one command inside a job.

It talks over one socket: both sides send messages after their lengths, in the format of `base.stream_messages`. It is
the reaper of everything that the command starts (PR_SET_CHILD_SUBREAPER), so nothing is left when the command, the
stream or the job ends; a server that is killed ends the stream, too.

`python -m riseml.executors.supervision.command_runner` runs one beside the server: standard input is a socket, on which
one line of JSON with the order comes first. On a node of a cluster the server of the role makes one for each call.

Python 3.6 or newer, standard library, `output_log` and `process_tree` only: nodes do not have riseml.
"""

import ctypes
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import sys
import termios
import time
from typing import Any

from riseml.executors.supervision import output_log, process_tree

_PR_SET_PDEATHSIG = 1  # numbers of prctl(2)
_PR_SET_CHILD_SUBREAPER = 36
_NOT_FOUND = 127  # exit codes, as a shell has them
_NOT_EXECUTED = 126
_GRACE = 2.0  # seconds between SIGHUP and SIGKILL
_END_OF_INPUT = b"\x04"  # Ctrl-D: a terminal has no other end
_WINCH = struct.Struct("HHHH")

INPUT = 0  # kinds of messages; the first three are channels, too
OUTPUT = 1
ERRORS = 2
END = 3
WINDOW_SIZE = 5
EXIT = 6
LENGTH = struct.Struct(">I")
SIZE = struct.Struct(">HH")
CODE = struct.Struct(">i")
LONGEST_PIECE = 64 * 1024  # bytes of content in one message
LONGEST_MESSAGE = 1024 * 1024  # bytes


class MessageReader:
    """Splits the bytes of the server into messages: the kind of each, and its fields."""

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, data: bytes) -> "list[tuple[int, bytes]]":
        """Return the messages that are complete with `data`.

        Raises:
            OSError: the bytes are not such a stream.
        """
        buffer = self._tail + data
        messages = []  # type: list[tuple[int, bytes]]
        at = 0
        while at + LENGTH.size <= len(buffer):
            (length,) = LENGTH.unpack_from(buffer, at)
            if not 0 < length <= LONGEST_MESSAGE:
                raise OSError(f"a message of {length} bytes")
            start = at + LENGTH.size
            if start + length > len(buffer):
                break
            messages.append((buffer[start], buffer[start + 1 : start + length]))
            at = start + length
        self._tail = buffer[at:]
        return messages


def write_message(kind: int, fields: bytes) -> bytes:
    """Return a message after its length."""
    return LENGTH.pack(len(fields) + 1) + bytes([kind]) + fields


def complete_order(request: "dict[str, Any]", folder: str, watched: int, main: int) -> "dict[str, Any]":
    """Return the complete order for a command that runs in the context of a job.

    Args:
        request: `command` (empty: a shell), `term`, and `rows` and `columns` of the terminal (0: without one).
        folder: the folder in which the job runs.
        watched: the pid of a process; the command ends when this process ends. 0: none.
        main: pid of the job's main process, whose variables the command gets.

    Raises:
        OSError: the job does not run any more.
    """
    environment = process_tree.read_environment(main)
    if request["rows"]:
        environment["TERM"] = request["term"] or "xterm"
    command = request["command"] or [shutil.which("bash", path=environment.get("PATH")) or "/bin/sh"]
    return dict(request, command=command, folder=folder, environment=environment, watched=watched)


class CommandRunner:
    """One command from its start to its end.

    Args:
        sock: the socket.
        order: of `complete_order`.
    """

    def __init__(self, sock: socket.socket, order: "dict[str, Any]") -> None:
        self._sock = sock
        self._order = order
        self._messages = MessageReader()
        self._to_server = bytearray()  # at most one piece
        self._to_command = bytearray()  # at most the server's window
        self._input_ends = False
        self._main = 0  # pid of the command
        self._input = -1  # descriptor for writing the command's input; -1: the input has ended
        self._terminal = -1
        self._outputs = {}  # type: dict[int, int]
        self._exit_code = None  # type: int | None
        self._children, self._child_ended = os.pipe()  # SIGCHLD writes a byte

    def run(self) -> None:
        """Run the command; return when none of its processes is left."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._route_signals()
        job = _open_process(self._order["watched"])
        if self._order["rows"]:
            self._start_on_terminal(libc)
        else:
            self._start_with_pipes(libc)
        self._sock.settimeout(0.0)
        try:
            while self._exit_code is None and self._handle_next(job):
                pass
            if self._exit_code is None:
                self._end_politely()
        except OSError as error:
            print(f"the stream broke: {error}", file=sys.stderr)
        finally:
            self._kill_rest()
        if self._exit_code is not None:
            self._send_rest(self._exit_code)

    def _route_signals(self) -> None:
        for descriptor in (self._children, self._child_ended):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._child_ended)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _start_on_terminal(self, libc: Any) -> None:
        terminal, command_end = pty.openpty()
        self._terminal = self._input = terminal
        self._outputs = {terminal: OUTPUT}
        self._resize(self._order["rows"], self._order["columns"])
        self._main = os.fork()
        if self._main == 0:
            self._become_command(libc, (command_end, command_end, command_end), has_terminal=True)
        os.close(command_end)
        os.set_blocking(terminal, False)

    def _start_with_pipes(self, libc: Any) -> None:
        reads, self._input = os.pipe()
        output = os.pipe()
        errors = os.pipe()
        self._outputs = {output[0]: OUTPUT, errors[0]: ERRORS}
        self._main = os.fork()
        if self._main == 0:
            self._become_command(libc, (reads, output[1], errors[1]), has_terminal=False)
        for descriptor in (reads, output[1], errors[1]):
            os.close(descriptor)
        for descriptor in (self._input, output[0], errors[0]):
            os.set_blocking(descriptor, False)

    def _become_command(self, libc: Any, streams: "tuple[int, int, int]", *, has_terminal: bool) -> None:
        """Turn the child into the command, in a session of its own. The kernel kills it when the runner dies."""
        code = _NOT_EXECUTED
        try:
            os.setsid()
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if has_terminal:
                fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
            process_tree.reset_signals()
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
            process_tree.raise_oom_score()
            os.chdir(self._order["folder"])
            command = self._order["command"]
            os.execvpe(command[0], command, self._order["environment"])
        except OSError as error:
            at_folder = error.filename == self._order["folder"]
            subject = self._order["folder"] if at_folder else self._order["command"][0]
            os.write(2, f"riseml: {subject}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
            code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTED
        finally:
            os._exit(code)

    def _handle_next(self, job: int) -> bool:
        """Wait for the next events and handle them; False when the stream or the job is gone."""
        poll = select.poll()
        for descriptor, events in self._list_wanted(job).items():
            poll.register(descriptor, events)
        ready = dict(poll.poll())
        sock_events = ready.get(self._sock.fileno(), 0)
        if job in ready:
            self._exit_code = 128 + signal.SIGKILL
            return False
        if sock_events & (select.POLLHUP | select.POLLERR) or (sock_events & select.POLLIN and not self._read_server()):
            return False
        if self._children in ready:
            self._reap_children()
        for descriptor in [output for output in self._outputs if output in ready]:
            if not self._to_server:
                self._copy_output(descriptor)
        self._write_input()
        self._flush()
        return True

    def _list_wanted(self, job: int) -> "dict[int, int]":
        """Return the descriptors to wait for. Read a side only while no bytes wait to be written to the other side."""
        event_masks = {self._children: select.POLLIN, self._sock.fileno(): select.POLLOUT if self._to_server else 0}
        if job >= 0:
            event_masks[job] = select.POLLIN
        if not self._to_server:
            event_masks.update(dict.fromkeys(self._outputs, select.POLLIN))
        if not self._to_command:
            event_masks[self._sock.fileno()] |= select.POLLIN
        elif self._input >= 0:
            event_masks[self._input] = event_masks.get(self._input, 0) | select.POLLOUT
        return event_masks

    def _read_server(self) -> bool:
        """Handle messages of the server; False when the server has ended the stream."""
        data = self._sock.recv(LONGEST_PIECE)
        for kind, fields in self._messages.feed(data):
            if kind == INPUT:
                self._to_command += fields
            elif kind == END and fields == bytes([INPUT]):
                if self._terminal >= 0:
                    self._to_command += _END_OF_INPUT
                else:
                    self._input_ends = True
            elif kind == WINDOW_SIZE and len(fields) == SIZE.size:
                self._resize(*SIZE.unpack(fields))
            else:
                raise OSError(f"a message that is not for a command: {kind}")
        return bool(data)

    def _resize(self, rows: int, columns: int) -> None:
        if self._terminal >= 0:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, _WINCH.pack(rows, columns, 0, 0))

    def _copy_output(self, descriptor: int) -> bool:
        """Copy one piece of output; False at the end of the stream, or when no output is there."""
        try:
            data = os.read(descriptor, LONGEST_PIECE)
        except BlockingIOError:
            return False
        except OSError:  # EIO: the last process that had the terminal has ended
            data = b""
        if data:
            self._to_server += write_message(self._outputs[descriptor], data)
        else:
            del self._outputs[descriptor]
        return bool(data)

    def _write_input(self) -> None:
        if self._to_command and self._input >= 0:
            try:
                del self._to_command[: os.write(self._input, self._to_command)]
            except BlockingIOError:
                return
            except OSError:  # the command has closed its input: drop later input
                self._input_ends = True
                self._to_command.clear()
        if self._input < 0:
            self._to_command.clear()
        elif self._input_ends and not self._to_command and self._input != self._terminal:
            os.close(self._input)
            self._input = -1

    def _flush(self) -> None:
        if self._to_server:
            try:
                del self._to_server[: self._sock.send(self._to_server)]
            except BlockingIOError:
                return

    def _reap_children(self) -> None:
        try:
            os.read(self._children, 512)
        except BlockingIOError:
            return
        for pid, code in _reap_ended():
            if pid == self._main:
                self._exit_code = code

    def _end_politely(self) -> None:
        """Send SIGHUP, as a closing terminal does, and wait a moment."""
        _signal_all(signal.SIGHUP)
        _signal_all(signal.SIGCONT)
        end = time.monotonic() + _GRACE
        while process_tree.list_descendants(os.getpid()) and time.monotonic() < end:
            select.select([self._children], [], [], max(0.0, end - time.monotonic()))
            self._reap_children()

    def _kill_rest(self) -> None:
        """Kill all children until none is left. The children of a killed process become children of this one."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    if not _signal_all(signal.SIGKILL):
                        return  # a setuid program of another user: this user cannot kill it
                    os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def _send_rest(self, code: int) -> None:
        """Send the rest of the output, then the exit code."""
        self._sock.settimeout(None)
        for descriptor in list(self._outputs):
            for _ in range(output_log.count_last_reads(descriptor, LONGEST_PIECE)):
                if not self._copy_output(descriptor):
                    break
                self._send_all()
        self._to_server += write_message(EXIT, CODE.pack(code))
        self._send_all()

    def _send_all(self) -> None:
        self._sock.sendall(self._to_server)
        self._to_server.clear()


def _open_process(pid: int) -> int:
    """Return a descriptor that is readable when a process has ended; -1: there is none to watch."""
    try:
        return os.pidfd_open(pid) if pid and hasattr(os, "pidfd_open") else -1
    except OSError:  # it has ended, or the kernel is older than 5.3; the server ends the stream of a job that has ended
        return -1


def _reap_ended() -> "list[tuple[int, int]]":
    """Return pid and exit code of each child that has ended since the last call."""
    exits = []  # type: list[tuple[int, int]]
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return exits
        if pid == 0:
            return exits
        killed = os.WIFSIGNALED(status)
        exits.append((pid, 128 + os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)))


def _signal_all(number: int) -> bool:
    """Signal every process below this one; False when this user may signal none of them."""
    sent = [process_tree.send_signal(pid, number) for pid in process_tree.list_descendants(os.getpid())]
    return not sent or any(sent)


def main() -> None:
    """Run the command that the server orders over standard input."""
    sock = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    order = bytearray()
    while not order.endswith(b"\n"):
        byte = sock.recv(1)
        if not byte:
            return
        order += byte
    CommandRunner(sock, json.loads(order.decode())).run()


if __name__ == "__main__":
    main()
