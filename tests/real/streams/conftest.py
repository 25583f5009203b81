"""A running job, and the command `riseml` beside it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from tests.support.command import start_riseml
from tests.support.hosts import Engine, Machine
from tests.support.rig import GO, GO_PAUSE, Rig, single
from tests.support.terminal import TerminalSession

RISEML = (sys.executable, "-m", "riseml.cli")


class Hands:
    """Calls of `riseml` about the jobs of a rig; `name` is the experiment that most of them are about."""

    def __init__(self, rig: Rig, name: str = "1") -> None:
        self.rig = rig
        self.name = name
        self.folder = rig.home  # the working directory of the calls

    def call(self, *words: str, given: bytes = b"") -> tuple[int, bytes, str]:
        """Run a command to its end; return its exit code, its output and its messages."""
        with start_riseml(words, self.folder, self.rig.environ(), stdin=subprocess.PIPE) as process:
            out, messages = process.communicate(given)
        return process.returncode, out, messages.decode()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command whose streams are pipes."""
        pipe = subprocess.PIPE
        command = [*RISEML, *words]
        return subprocess.Popen(command, env=self.rig.environ(), cwd=self.folder, stdin=pipe, stdout=pipe, stderr=pipe)

    def open(self, *words: str) -> TerminalSession:
        """Start a command on a terminal."""
        return TerminalSession([*RISEML, *words], self.folder, self.rig.environ(), 33, 101)

    def list_commands(self) -> list[str]:
        """Return the command lines of everything that runs in jobs, without what runs their `run`."""
        host = self.rig.host
        if isinstance(host, Engine):
            rows = host.rows(self.rig.server_id(), running=True)
            lines = [line for row in rows for *_, line in host.api.top(row["Id"])["Processes"]]
        else:
            assert isinstance(host, Machine)
            lines = []
            for process in host.processes(self.rig.server_id()):
                try:
                    lines.append(" ".join(process.cmdline()))
                except psutil.Error:
                    continue
        of_riseml = ("OUTPUT_DIR/go", "event_reader")  # the last one reads what the job writes for TensorBoard
        pauses = (GO_PAUSE, "sleep 2")  # of a `run`, and of the shell that starts the reader
        return [line for line in lines if not line.startswith(pauses) and not any(word in line for word in of_riseml)]

    def wait_until_nothing_is_left(self) -> None:
        """Wait until no command runs in a job."""
        self.rig.wait("nothing is left of the commands", lambda: not self.list_commands())


def use_two_shells(hands: Hands) -> None:
    """Use a shell in the job of the experiment as a person does, beside a second one; leave both."""
    with hands.open("shell", hands.name) as one, hands.open("shell", f"{hands.name}.train") as other:
        one.wait_for(f"A shell in {hands.name}.train")
        one.type("stty size; echo job=$RISEML_JOB term=$TERM\n")
        one.wait_for("33 101")
        one.wait_for("job=train term=xterm")
        one.resize(44, 132)
        one.type("until [ \"$(stty size)\" = '44 132' ]; do sleep 0.05; done; echo resi''zed\n")
        one.wait_for("resized")
        one.type("sh -c 'echo be\"\"gun; exec sleep 600'\n")  # what says so is in the foreground already
        one.wait_for("begun")
        one.type("\x03")  # Ctrl-C ends the sleep, and not the shell
        one.type("echo co''de=$?\n")
        one.wait_for("code=130")
        one.type("exit 5\n")
        other.type("exit 6\n")  # two shells at once
        assert (one.finish(), other.finish()) == (5, 6)


@pytest.fixture(autouse=True)
def end_experiments(request: pytest.FixtureRequest) -> Iterator[None]:
    """End what a test leaves running, before its server ends."""
    names = {"rig", "docker_rig", "process_rig", "shared_rig", "shared_docker_rig"} & set(request.fixturenames)
    rigs: list[Rig] = [request.getfixturevalue(name) for name in names]
    yield
    for rig in rigs:
        for one in rig.get("/v1/experiments")["experiments"]:
            rig.post(f"/v1/experiments/{one['id']}/kill")
            rig.wait_closed(one["id"])


@pytest.fixture
def hands(shared_rig: Rig) -> Hands:
    """A job that runs until the test makes its file, on each executor in its turn."""
    return start_job(shared_rig)


@pytest.fixture
def docker_hands(shared_docker_rig: Rig) -> Hands:
    """The same on the engine alone."""
    return start_job(shared_docker_rig)


def start_job(rig: Rig) -> Hands:
    """Start a job that runs until the test makes its file."""
    name = rig.submit(single(GO))["id"]
    rig.wait_state(name, "RUNNING")
    return Hands(rig, name)
