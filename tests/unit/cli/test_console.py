"""The command as a process of its own: pipes, signals, what it imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.cli.door import Door, end, line, make_experiment, state

RISEML = (sys.executable, "-c", "from riseml.cli.main import run; run()")
HEAVY = (
    "riseml.server",
    "riseml.store",
    "riseml.executors",
    "riseml.control",
    "riseml.planning",
    "fastapi",
    "sqlalchemy",
)


def _environ(door: Door, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RISEML_", "DOCKER_"))}
    return kept | {"RISEML_HOME": str(door.home)} | more


@contextmanager
def _start(words: list[str], folder: Path, environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*RISEML, *words],
        cwd=folder,
        env=environ,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _run(words: list[str], folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [*RISEML, *words]
    return subprocess.run(
        command,
        cwd=folder,
        env=environ,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )


def test_a_pipe_gets_plain_text(door: Door, folder: Path) -> None:
    door.experiments["4"] = make_experiment()
    door.entries = [state("FAILED", 1), line("\x1b[31mred\x1b[0m é 日本", 2), end()]
    result = _run(["logs", "4"], folder, _environ(door))
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert "] red é 日本\n" in result.stdout


def test_colours_can_be_asked_for_and_forbidden(door: Door, folder: Path) -> None:
    door.experiments["4"] = make_experiment()
    door.entries = [line("x", 1), end()]
    assert "\x1b[36m4.master" in _run(["logs", "4"], folder, _environ(door, FORCE_COLOR="1")).stdout
    environ = _environ(door, FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b" not in _run(["logs", "4"], folder, environ).stdout


def test_a_terminal_that_knows_only_ascii_is_no_reason_to_end(door: Door, folder: Path) -> None:
    door.experiments["4"] = make_experiment()
    door.entries = [line("é\ud800", 1), end()]
    result = _run(["logs", "4"], folder, _environ(door, PYTHONIOENCODING="ascii", LC_ALL="C"))
    assert result.returncode == 0
    assert "\\xe9" in result.stdout


def test_ctrl_c_detaches(door: Door, folder: Path) -> None:
    door.experiments["4"] = make_experiment()
    door.entries = [line("hello", 1)]
    door.hold = True
    with _start(["train"], folder, _environ(door)) as process:
        assert process.stdout is not None
        while "hello" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Experiment 4 will continue in background. Type `riseml logs 4`" in said
    assert "Traceback" not in said


def test_a_reader_that_leaves_is_no_error(door: Door, folder: Path) -> None:
    door.experiments["4"] = make_experiment()
    door.entries = [line("x" * 1000, number) for number in range(2000)]
    door.entries.append(end())
    with _start(["logs", "4"], folder, _environ(door)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0


def test_a_closed_output_is_no_error(door: Door, folder: Path) -> None:
    command = " ".join(f"'{word}'" for word in (*RISEML, "status")) + " >&-"
    result = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=_environ(door), capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("words", [["--help"], ["status"], ["logs", "4"], ["validate"]], ids=" ".join)
def test_a_thin_client_imports_no_part_of_the_server(door: Door, folder: Path, words: list[str]) -> None:
    door.experiments["4"] = make_experiment()
    door.entries = [end()]
    program = (
        "import sys, json\nfrom riseml.cli.main import execute\n"
        f"code = execute({words!r})\nprint(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=_environ(door), capture_output=True, text=True, check=False
    )
    code, modules = json.loads(result.stderr.splitlines()[-1])
    assert code == 0
    assert [name for name in modules if name.startswith((*HEAVY, "docker"))] == []
    if words != ["validate"]:
        assert not {"jsonschema", "yaml", "rich", "packaging.version", "pygments"} & set(modules)
    if words in (["--help"], ["validate"]):
        assert "httpx" not in modules


@pytest.mark.parametrize("words", ["status", "logs 4", "logs 4 --json", "train", "--version", "status -h", "-h"])
def test_an_output_without_room_is_one_clear_sentence(door: Door, folder: Path, words: str) -> None:
    door.experiments["4"] = make_experiment()
    door.entries = [line("hello", 1), end()]
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*RISEML, *words.split()],
            cwd=folder,
            env=_environ(door),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert result.returncode == 4
    assert result.stderr.startswith("error: the output cannot be written: No space left on device\nhint: ")
    assert len(result.stderr.splitlines()) == 2


def test_what_is_said_beside_the_result_may_be_lost(door: Door, folder: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [*RISEML, "status", "7"]
        environ = _environ(door)
        result = subprocess.run(command, cwd=folder, env=environ, stderr=full, check=False, timeout=60)
    assert result.returncode == 3


@pytest.mark.parametrize("words", ["init", "init -f other.yml", "train", "validate"])
def test_a_folder_that_was_removed_is_not_another_one(door: Door, tmp_path: Path, words: str) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    program = f"import os; os.rmdir({str(place)!r}); from riseml.cli.main import run; run()"
    command = [sys.executable, "-c", program, *words.split()]
    environ = _environ(door, PWD=str(place))
    result = subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode in (3, 4)
    assert result.stderr.startswith("error: ")
    assert not place.exists()
    assert not Path("/riseml.yml").exists()
    assert not Path("/other.yml").exists()
