"""The runner of one command inside a job: `python -m riseml.executors.process.command_runner`.

Its standard input is a socket of the server. It reads one line of JSON (see `RunnerOrder`), then both sides send
messages after their lengths (`riseml.stream_messages`). It is the reaper of everything that the command starts
(PR_SET_CHILD_SUBREAPER), so nothing is left when the command, the stream or the job ends; a server that is killed ends
the stream, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import sys
import termios
import time
from dataclasses import dataclass
from typing import Any

from riseml.executors.process import supervisor
from riseml.stream_messages import (
    LONGEST_PIECE,
    Channel,
    ChannelEnd,
    CommandExit,
    LengthPrefixed,
    Piece,
    WindowSize,
    prefix_length,
)

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
_NOT_FOUND, _NOT_EXECUTED = 127, 126  # exit codes, as a shell has them
_GRACE = 2.0  # seconds between SIGHUP and SIGKILL
_END_OF_INPUT = b"\x04"  # Ctrl-D: a terminal has no other end
_WINCH = struct.Struct("HHHH")


@dataclass(frozen=True, slots=True)
class RunnerOrder:
    """What the runner reads first."""

    command: list[str]
    folder: str  # the working directory
    environment: dict[str, str]
    supervisor: int  # pid of the job's supervisor; 0: none is watched
    rows: int = 0  # of the terminal; 0: without a terminal
    columns: int = 0


class CommandRunner:
    """One command from its start to its end."""

    def __init__(self, door: socket.socket, order: RunnerOrder) -> None:
        self._door = door
        self._order = order
        self._messages = LengthPrefixed()
        self._to_server = bytearray()  # at most one piece
        self._to_command = bytearray()  # at most the server's window
        self._input_ends = False
        self._main = 0  # pid of the command
        self._input = -1  # where the command's input is written; -1: it has ended
        self._terminal = -1
        self._outputs: dict[int, Channel] = {}
        self._exit_code: int | None = None
        self._children, self._child_ended = os.pipe()  # SIGCHLD writes a byte

    def run(self) -> None:
        """Run the command; return when nothing of it is left."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._route_signals()
        job = _open_process(self._order.supervisor)
        if self._order.rows:
            self._start_on_terminal(libc)
        else:
            self._start_with_pipes(libc)
        self._door.settimeout(0.0)
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
        signal.set_wakeup_fd(self._child_ended, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _start_on_terminal(self, libc: Any) -> None:
        ours, theirs = pty.openpty()
        self._terminal = self._input = ours
        self._outputs = {ours: Channel.OUTPUT}
        self._resize(WindowSize(self._order.rows, self._order.columns))
        self._main = os.fork()
        if self._main == 0:
            self._become_command(libc, (theirs, theirs, theirs), has_terminal=True)
        os.close(theirs)
        os.set_blocking(ours, False)

    def _start_with_pipes(self, libc: Any) -> None:
        (reads, self._input), output, errors = os.pipe(), os.pipe(), os.pipe()
        self._outputs = {output[0]: Channel.OUTPUT, errors[0]: Channel.ERRORS}
        self._main = os.fork()
        if self._main == 0:
            self._become_command(libc, (reads, output[1], errors[1]), has_terminal=False)
        for descriptor in (reads, output[1], errors[1]):
            os.close(descriptor)
        for descriptor in (self._input, output[0], errors[0]):
            os.set_blocking(descriptor, False)

    def _become_command(self, libc: Any, streams: tuple[int, int, int], *, has_terminal: bool) -> None:
        """Turn the child into the command, in a session of its own. It dies with the runner."""
        code = _NOT_EXECUTED
        try:
            os.setsid()
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if has_terminal:
                fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
            supervisor.reset_signals()
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
            supervisor.raise_oom_score()
            os.chdir(self._order.folder)
            command = self._order.command
            os.execvpe(command[0], command, self._order.environment)
        except OSError as error:
            what = self._order.folder if error.filename == self._order.folder else self._order.command[0]
            os.write(2, f"riseml: {what}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
            code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTED
        finally:
            os._exit(code)

    def _handle_next(self, job: int) -> bool:
        """Wait for something and handle it; False when the stream or the job is gone."""
        poll = select.poll()
        for descriptor, events in self._list_wanted(job).items():
            poll.register(descriptor, events)
        found = dict(poll.poll())
        at_door = found.get(self._door.fileno(), 0)
        if job in found:
            self._exit_code = 128 + signal.SIGKILL
            return False
        if at_door & (select.POLLHUP | select.POLLERR) or (at_door & select.POLLIN and not self._read_server()):
            return False
        if self._children in found:
            self._reap_children()
        for descriptor in [one for one in self._outputs if one in found]:
            if not self._to_server:
                self._copy_output(descriptor)
        self._write_input()
        self._flush()
        return True

    def _list_wanted(self, job: int) -> dict[int, int]:
        """Return the descriptors to wait for. Read a side only while no bytes wait to be written to the other side."""
        wanted = {self._children: select.POLLIN, self._door.fileno(): select.POLLOUT if self._to_server else 0}
        if job >= 0:
            wanted[job] = select.POLLIN
        if not self._to_server:
            wanted |= dict.fromkeys(self._outputs, select.POLLIN)
        if not self._to_command:
            wanted[self._door.fileno()] |= select.POLLIN
        elif self._input >= 0:
            wanted[self._input] = wanted.get(self._input, 0) | select.POLLOUT
        return wanted

    def _read_server(self) -> bool:
        """Handle messages of the server; False when the server has ended the stream."""
        data = self._door.recv(LONGEST_PIECE)
        for message in self._messages.feed(data):
            match message:
                case Piece(Channel.INPUT, content):
                    self._to_command += content
                case ChannelEnd(Channel.INPUT) if self._terminal >= 0:
                    self._to_command += _END_OF_INPUT
                case ChannelEnd(Channel.INPUT):
                    self._input_ends = True
                case WindowSize():
                    self._resize(message)
                case _:
                    raise OSError(f"a message that is not for a command: {message}")
        return bool(data)

    def _resize(self, size: WindowSize) -> None:
        if self._terminal >= 0:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, _WINCH.pack(size.rows, size.columns, 0, 0))

    def _copy_outputs(self, found: dict[int, int]) -> None:
        for descriptor in [one for one in self._outputs if one in found and not self._to_server]:
            self._copy_output(descriptor)

    def _copy_output(self, descriptor: int) -> bool:
        """Copy one piece of output; False at the end of the stream, or when nothing is there."""
        try:
            data = os.read(descriptor, LONGEST_PIECE)
        except BlockingIOError:
            return False
        except OSError:  # EIO: the last process that had the terminal has ended
            data = b""
        if data:
            self._to_server += prefix_length(Piece(self._outputs[descriptor], data))
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
                del self._to_server[: self._door.send(self._to_server)]
            except BlockingIOError:
                return

    def _reap_children(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._children, 512)
        for pid, code in _reap_ended():
            if pid == self._main:
                self._exit_code = code

    def _end_politely(self) -> None:
        """Send SIGHUP, as a closing terminal does, and wait a moment."""
        _signal_all(signal.SIGHUP)
        _signal_all(signal.SIGCONT)
        end = time.monotonic() + _GRACE
        while supervisor.list_descendants(os.getpid()) and time.monotonic() < end:
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
        """Send the output that is left, then the exit code."""
        self._door.settimeout(None)
        for descriptor in list(self._outputs):
            while self._copy_output(descriptor):
                self._send_all()
        self._to_server += prefix_length(CommandExit(code))
        self._send_all()

    def _send_all(self) -> None:
        self._door.sendall(self._to_server)
        self._to_server.clear()


def _open_process(pid: int) -> int:
    """Return a descriptor that is readable when a process has ended; -1: there is none to watch."""
    try:
        return os.pidfd_open(pid) if pid else -1
    except OSError:  # it has ended, or a kernel before 5.3: the server ends the stream of a job that has ended
        return -1


def _reap_ended() -> list[tuple[int, int]]:
    """Return pid and exit code of each child that has ended since the last call."""
    found: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        code = os.waitstatus_to_exitcode(status)
        found.append((pid, 128 - code if code < 0 else code))


def _signal_all(number: int) -> bool:
    """Signal every process below this one; False when this user may signal none of them."""
    sent = [supervisor.send_signal(pid, number) for pid in supervisor.list_descendants(os.getpid())]
    return not sent or any(sent)


def main() -> None:
    """Run the command that the server orders over standard input."""
    door = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    order = bytearray()
    while not order.endswith(b"\n"):
        byte = door.recv(1)
        if not byte:
            return
        order += byte
    CommandRunner(door, RunnerOrder(**json.loads(order))).run()


if __name__ == "__main__":
    main()
