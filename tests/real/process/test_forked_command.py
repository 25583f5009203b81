"""The commands that tests fork do what started ones do."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.command import RISEML, plain_environ, run_riseml, start_riseml
from tests.support.fork_server import starts_the_same
from tests.support.forked_command import ForkedCommand
from tests.support.rig import GO, Rig, single
from tests.support.waiting import DEADLINE


@pytest.mark.parametrize(
    "words",
    [
        ["status"],  # the environment names the home
        ["validate"],  # the file is in the working directory
        ["logs", "77"],
        ["trian"],
    ],
)
def test_a_forked_command_prints_and_ends_as_a_started_one(process_rig: Rig, words: list[str]) -> None:
    environ, where = process_rig.environ(), process_rig.home
    (where / "riseml.yml").write_text(single("echo grüße", nonsense=1))
    forked = run_riseml(words, where, environ)
    started = subprocess.run(
        [RISEML, *words], cwd=where, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_a_forked_command_reads_its_input_hears_ctrl_c_and_can_be_killed(process_rig: Rig) -> None:
    process_rig.submit(single(GO))
    process_rig.wait_state("1", "RUNNING")
    environ, where = process_rig.environ(), process_rig.home
    with start_riseml(["exec", "1", "--", "cat"], where, environ, stdin=subprocess.PIPE) as command:
        assert isinstance(command, ForkedCommand)
        assert (command.communicate(b"a\nb\n"), command.returncode) == ((b"a\nb\n", b""), 0)
    for sign, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        with start_riseml(["exec", "1", "--", "sh", "-c", "echo begun; sleep 600"], where, environ) as command:
            assert command.stdout is not None, "it is a pipe"
            assert command.stdout.readline() == b"begun\n"
            command.send_signal(sign)
            assert command.wait(DEADLINE) == code
    process_rig.go_file("1").touch()
    process_rig.wait_closed("1")


def test_what_python_reads_at_its_start_keeps_a_command_from_being_forked(tmp_path: Path) -> None:
    environ = plain_environ(RISEML_HOME=str(tmp_path / "home"))
    assert starts_the_same(environ)
    assert not starts_the_same({**environ, "PYTHONPATH": str(tmp_path)})
    assert not starts_the_same({**environ, "LC_ALL": "C"})
    with start_riseml(["--version"], tmp_path, {**environ, "LC_ALL": "C"}) as command:
        assert not isinstance(command, ForkedCommand)
        assert command.communicate()[0].startswith(b"riseml ")
