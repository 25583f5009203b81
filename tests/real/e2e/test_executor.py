"""`--executor`: the same file in containers or as processes, as the user chooses."""

from __future__ import annotations

from collections.abc import Callable

from tests.real.e2e.console import Console, write
from tests.support.rig import single


def test_an_idle_server_changes_its_executor_and_a_busy_server_refuses(make_console: Callable[..., Console]) -> None:
    console = make_console()
    write(console.where, single("echo in $OUTPUT_DIR; sleep $DURATION", env={"DURATION": "0"}))
    contained = console.run("train", "--executor", "docker")
    assert contained.code == 0, contained.err
    assert "in /output\n" in contained.out
    console.end(contained.id)
    as_process = console.run("train", "--executor", "process")
    assert as_process.code == 0, as_process.err
    assert "The riseml server now uses the process executor." in as_process.err
    assert f"in {console.home}/output" in as_process.out
    console.end(as_process.id)
    changes = ("--set", "train.env.DURATION=600", "--set", "train.stop_grace=1")
    unasked = console.run("train", "-d", *changes)
    assert unasked.code == 4, "the choice of an earlier command is not a choice for this one"
    assert "the riseml server runs jobs as processes of this machine" in unasked.err
    assert console.run("train", "-d", "--executor", "process", *changes).code == 0
    refused = console.run("train", "--executor", "docker")
    assert refused.code == 4
    assert "uses the process executor for 1 experiment" in refused.err
    assert console.run("kill", "3").code == 0
    assert console.run("logs", "3").code == 0
