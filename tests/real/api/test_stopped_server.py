"""A server that stands still is named by each command that follows it; the command goes on when the server does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.command import start_riseml
from tests.support.rig import GO, Rig, single
from tests.support.waiting import DEADLINE

GO_ON = GO.replace("/go", "/go-on")


@contextmanager
def following(rig: Rig, words: tuple[str, ...]) -> Iterator[subprocess.Popen[str]]:
    """Start a command, and wait until it has printed what there is."""
    with start_riseml(words, rig.home, rig.environ(), text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()


def read_message(process: subprocess.Popen[str], words: str) -> str:
    """Return the next message of a command with these words."""
    assert process.stderr is not None
    return next(line for line in process.stderr if words in line)


def test_a_server_that_is_stopped_is_named_and_followed_again(process_rig: Rig) -> None:
    rig = process_rig
    rig.submit(single(f"echo begun; {GO}; echo over"))
    rig.wait_state("1", "RUNNING")
    pid = rig.server_pid()
    with (
        following(rig, ("logs", "--follow", "1")) as log,
        following(rig, ("logs", "--follow", "--json", "1")) as entries,
        following(rig, ("status", "--watch", "1")) as view,
        following(rig, ("exec", "1", "--", "sh", "-c", f"echo begun; {GO_ON}; echo over")) as command,
    ):
        followers = (log, entries, view, command)
        for _ in range(2):  # each time that it stands still
            os.kill(pid, signal.SIGSTOP)
            try:
                for follower in followers:
                    assert f"(process {pid}) is stopped" in read_message(follower, "does not answer")
            finally:
                os.kill(pid, signal.SIGCONT)
            for follower in followers:
                assert read_message(follower, "again") == "The riseml server answers again.\n"
        rig.go_file("1").with_name("go-on").touch()  # the end of the job would end its command
        command.wait(DEADLINE)
        rig.go_file("1").touch()
        outputs = [follower.communicate()[0] for follower in followers]
        assert [follower.returncode for follower in followers] == [0, 0, 0, 0]
    assert all("over" in output for output in (outputs[0], outputs[1], outputs[3]))
    assert "FINISHED" in outputs[2]
